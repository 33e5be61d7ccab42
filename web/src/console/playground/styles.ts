import { css } from 'lit';

export const playgroundStyles = css`
  .play { grid-template-columns: minmax(0, 380px) minmax(0, 1fr); max-width: 1200px; margin-top: 10px; }
  .play .row { margin: 0 0 12px; padding: 0; border: 0; min-width: 0; }
  .play .row > label, .play legend { display: block; margin-bottom: 3px; padding: 0; font-weight: 550; }
  .play .row > input, .play .row > select { width: 100%; }
  .play .row p { margin: 2px 0 0; }
  .play .required { color: var(--muted); font-weight: 400; font-size: 12px; }
  .play .address { display: grid; grid-template-columns: 1fr 1fr; gap: 10px; }
  .play input[readonly] { background: var(--sunken); }
  .play .address .row { margin-bottom: 4px; }
  .play .address-about { margin: 0 0 14px; }
  .play .nested { margin: 6px 0; padding: 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--sunken); }
  .play .minor { margin: 14px 0 0; }
  .play > div > .minor:first-child { margin-top: 0; }
  .play .copy { display: inline-flex; align-items: center; gap: 4px; margin-left: 6px; }
  .play .problem { padding: 4px 0; }
  @media (max-width: 760px) {
    .play { grid-template-columns: minmax(0, 1fr); }
  }
`;
