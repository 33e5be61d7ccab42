import { css } from 'lit';

export const conversationStyles = css`
  .talks { flex: 1; min-height: 0; display: grid; grid-template-columns: 300px minmax(0, 1fr); gap: 16px; }
  .talks.none-yet { grid-template-columns: minmax(0, 1fr); }
  .talks .none { align-self: center; }
  .talk-list { display: flex; flex-direction: column; min-height: 0; }
  .talk-row {
    display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 2px 8px; align-items: center; padding: 9px 12px;
    border-bottom: 1px solid var(--line); color: var(--text); text-decoration: none;
  }
  .talk-row b { font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .talk-row .small { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .talk-row .v { justify-self: end; }
  .talk-row:hover { background: var(--sunken); }
  .talk-row[aria-current] { background: var(--accent-soft); }
  .talk-row:focus-visible { outline-offset: -2px; }
  .talk { min-width: 0; }
  .talk-head { display: flex; align-items: center; gap: 10px; padding: 11px 16px; border-bottom: 1px solid var(--line); }
  .talk-head h2 { margin: 0; font-size: 15px; font-weight: 650; overflow-wrap: anywhere; }
  .talk-head p { margin: 0; }
  .talk-head .back { display: none; color: var(--muted); padding: 4px; }
  .block { margin: 0; padding: 10px 16px 12px; border-bottom: 1px solid var(--line); border-left: 3px solid var(--line); }
  .block.person { border-left-color: var(--accent); background: var(--accent-soft); }
  .block header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 8px; }
  .block header b { font-weight: 600; }
  .block header button { margin-left: auto; }
  .block p { margin: 3px 0 0; }
  .block ul { margin: 3px 0 0; padding-left: 18px; overflow-wrap: anywhere; }
  .block table { width: auto; min-width: 260px; margin-top: 6px; border: 1px solid var(--line); border-radius: 6px; }
  .block th, .block td { padding: 4px 10px; }
  .label { font-weight: 600; }
  .label > svg { display: inline; margin-right: 5px; vertical-align: -2px; }
  .label.error { color: var(--error); }
  .label.warning { color: var(--warning); }
  .waiting { padding: 8px 16px; border-top: 1px solid var(--line); background: var(--sunken); max-height: 28%; overflow-y: auto; flex: none; }
  .waiting p { margin: 0 0 4px; }
  .waiting ul, .said { margin: 0; padding: 0; list-style: none; display: grid; gap: 4px; }
  .said { padding: 8px 16px; border-top: 1px solid var(--line); max-height: 30%; overflow-y: auto; flex: none; }
  .tell { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 8px; padding: 10px 16px; border-top: 1px solid var(--line); flex: none; }
  .tell textarea { field-sizing: content; max-height: 160px; min-height: 32px; resize: none; }
  .tell .problem { grid-column: 1 / -1; padding: 0; }
  .tell .problem:empty { display: none; }
  @media (max-width: 1000px) {
    .talks { grid-template-columns: minmax(0, 1fr); }
    .talks .none, .talks.chosen .talk-list > :not(h1) { display: none; }
    .talks.chosen { grid-template-rows: auto minmax(0, 1fr); gap: 0; }
    .talks.chosen h1 { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    .talk-head .back { display: block; }
  }
`;
