import { css } from 'lit';

export const settingsStyles = css`
  .settings { max-width: 860px; }
  .settings .part { display: grid; grid-template-columns: 220px minmax(0, 1fr); gap: 8px 24px; margin: 0 0 10px; }
  .settings h2 { margin: 0; font-size: 14px; font-weight: 600; }
  .settings .part p { margin: 2px 0 0; }
  .settings .part > div > .muted { font-size: 12.5px; }
  .settings .bar { margin-bottom: 8px; }
  .settings input[type='email'] { flex: 1; min-width: 180px; }
  .settings .note { display: flex; align-items: center; gap: 8px; }
  .settings .note .problem, .settings .body > .problem { padding: 0; }
  .radios { display: flex; flex-wrap: wrap; gap: 14px; }
  .radios label { display: flex; align-items: center; gap: 6px; }
  .radios input { min-height: 0; accent-color: var(--accent); }
  .tags { display: flex; flex-wrap: wrap; gap: 6px; margin: 0 0 8px; padding: 0; list-style: none; }
  .tags li { display: flex; align-items: center; padding: 0 2px 0 10px; border: 1px solid var(--control); border-radius: 99px; overflow-wrap: anywhere; }
  .sessions { margin: 0; padding: 0; list-style: none; display: grid; gap: 8px; }
  .sessions li { display: flex; justify-content: space-between; align-items: center; gap: 8px; }
  .pairing { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; margin-bottom: 8px; }
  .pairing > div { flex: 1; min-width: 200px; }
  .qr { width: 148px; height: 148px; background: #fff; border-radius: 6px; flex: none; }
  bellwire-quiet-band { display: block; padding: 26px 8px 0; }
  .band { position: relative; height: 28px; border: 1px solid var(--control); border-radius: 6px; background: var(--sunken); touch-action: pan-y; }
  .band .piece { position: absolute; top: 0; bottom: 0; background: var(--accent-soft); border-block: 2px solid var(--accent); cursor: grab; }
  .band .now { position: absolute; top: -3px; bottom: -3px; width: 2px; margin-left: -1px; background: var(--error); pointer-events: none; }
  .band .handle { position: absolute; top: -4px; bottom: -4px; width: 12px; margin-left: -6px; border-radius: 6px; background: var(--accent); cursor: ew-resize; touch-action: none; }
  .band .handle::before { content: ''; position: absolute; inset: -4px -8px; }
  .handle .time { position: absolute; bottom: 100%; left: 50%; transform: translateX(-50%); margin-bottom: 2px; padding: 0 3px; border-radius: 4px; background: var(--surface); font-size: 12px; color: var(--text); }
  .hours { display: flex; justify-content: space-between; margin: 4px 0 6px; font-size: 11.5px; color: var(--muted); }
  .quiet-now { margin-bottom: 8px !important; }
  @media (max-width: 760px) {
    .settings .part { grid-template-columns: minmax(0, 1fr); }
  }
`;
