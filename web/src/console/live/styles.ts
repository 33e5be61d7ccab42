import { css } from 'lit';

export const liveStyles = css`
  .split { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(0, 1fr) 340px; gap: 16px; }
  .split.alone { grid-template-columns: minmax(0, 1fr); }
  .split > * { min-height: 0; }
  .live-table { position: relative; }
  .live-head, .live-row {
    display: grid; grid-template-columns: 104px minmax(150px, 1.7fr) minmax(80px, 0.9fr) minmax(80px, 0.9fr) minmax(110px, 1.1fr);
    column-gap: 12px; align-items: center; padding: 0 12px; font-size: 13px;
  }
  .split:not(.alone) .live-head, .split:not(.alone) .live-row { grid-template-columns: 104px minmax(150px, 1.7fr) minmax(80px, 0.8fr) minmax(110px, 1fr); }
  .split:not(.alone) .live-head > :nth-child(3), .split:not(.alone) .live-row .source { display: none; }
  .live-head { padding: 8px 12px; font-size: 11.5px; font-weight: 550; color: var(--muted); border-bottom: 1px solid var(--line); }
  .live-row { height: 35px; border-bottom: 1px solid var(--line); cursor: pointer; }
  .live-row:hover { background: var(--sunken); }
  .live-row.selected { background: var(--accent-soft); }
  .live-row > span { min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .live-row .type { display: flex; align-items: center; gap: 6px; }
  button.plain { border: 0; background: none; padding: 0 2px; min-height: 24px; font-size: 13px; font-weight: 550; color: inherit; text-align: start; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .live-row .type button:focus-visible { outline-offset: -2px; }
  .new { position: absolute; z-index: 1; top: 40px; left: 50%; transform: translateX(-50%); border-radius: 99px; box-shadow: var(--shadow); }
  bellwire-live-page input[type='search'] { width: 340px; }
  .gap { margin: 0 0 10px; }
  .rate { display: flex; align-items: center; gap: 7px; }
  .rate .dot { width: 7px; height: 7px; border-radius: 50%; background: var(--warning); }
  .rate .dot.live { background: var(--success); }
  bellwire-trace { display: flex; flex-direction: column; margin-bottom: 16px; }
  .trace { position: relative; overflow-y: auto; }
  .trace .minor { padding-right: 32px; }
  .trace .sev { margin-right: 6px; vertical-align: -2px; }
  .trace > .close { position: absolute; right: 10px; top: 10px; }
  .trace > p { margin: 2px 0 0; overflow-wrap: anywhere; }
  .path { list-style: none; margin: 14px 0 0; padding: 0; }
  .path li { position: relative; padding: 0 0 14px 22px; overflow-wrap: anywhere; }
  .path li::before {
    content: ''; position: absolute; left: 5px; top: 6px; width: 8px; height: 8px; border-radius: 50%; background: var(--surface);
    border: 2px solid var(--accent);
  }
  .path li::after { content: ''; position: absolute; left: 10px; top: 18px; bottom: -4px; width: 2px; background: var(--line); }
  .path li:last-child::after { display: none; }
  .path b { font-weight: 600; }
  .path .t { float: right; margin-left: 8px; color: var(--muted); font-size: 12px; }
  .path p { margin: 1px 0 0; color: var(--muted); }
  @media (max-width: 1000px) {
    .split { grid-template-columns: minmax(0, 1fr); grid-template-rows: minmax(0, 1fr) minmax(0, 1.2fr); }
    .split.alone { grid-template-rows: minmax(0, 1fr); }
    .split .live-head.live-head, .split .live-row.live-row { grid-template-columns: 96px minmax(0, 1.2fr) minmax(0, 1.1fr); }
    .live-head > :nth-child(3), .live-head > :nth-child(4), .live-row .source, .live-row .conversation { display: none; }
  }
  @media (max-width: 480px) {
    .split .live-head.live-head, .split .live-row.live-row { grid-template-columns: 62px minmax(0, 1.3fr) minmax(0, 1fr); column-gap: 8px; }
    .live-row .ms { display: none; }
  }
`;
