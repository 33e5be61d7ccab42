import { css } from 'lit';

export const deliveriesStyles = css`
  .delivery { display: grid; grid-template-columns: 84px minmax(0, 1fr) auto; gap: 12px; padding: 10px 14px; border-bottom: 1px solid var(--line); align-items: start; }
  .delivery .v { justify-self: start; margin-top: 1px; }
  .delivery .what { min-width: 0; overflow-wrap: anywhere; }
  .delivery p { margin: 2px 0 0; }
  .delivery .about { font-weight: 600; }
  .delivery .why.error { color: var(--error); }
  .delivery .acts { display: flex; gap: 6px; }
  @media (max-width: 480px) {
    .delivery { grid-template-columns: minmax(0, 1fr) auto; row-gap: 4px; }
    .delivery .what { grid-column: 1 / -1; order: 3; }
  }
`;
