import { css } from 'lit';

export const signInStyles = css`
  .sign-in { display: grid; grid-template-columns: minmax(0, 1fr); place-items: center; min-height: 100vh; padding: 16px; background: var(--bg); }
  .sign-in > .card { width: 440px; max-width: 100%; padding: 24px 26px 14px; }
  .sign-in .brand { padding: 0 0 14px; }
  .sign-in p { margin: 8px 0 0; }
  .sign-in pre { font-size: 13.5px; }
  .sign-in form { margin-top: 18px; padding-top: 14px; border-top: 1px solid var(--line); }
  .sign-in label { display: block; margin-bottom: 6px; font-weight: 550; }
  .sign-in input { flex: 1; min-width: 0; }
  .sign-in .reason { padding: 8px 10px; border-radius: 6px; background: var(--warning-soft); }
  .sign-in .problem { min-height: 22px; padding: 0; }
`;
