import { css } from 'lit';

export const inboxStyles = css`
  :host { display: inline-block; position: relative; }
  .bell { position: relative; width: 36px; height: 36px; color: inherit; border-radius: var(--radius); }
  .badge {
    position: absolute; top: 0; left: 20px; min-width: 17px; padding: 0 5px; border-radius: 99px; line-height: 17px;
    font-size: 11px; font-weight: 650; text-align: center; background: var(--accent); color: var(--surface);
  }
  .panel {
    position: fixed; inset: auto; margin: 0; padding: 0; width: 400px; max-width: calc(100vw - 24px); max-height: min(600px, calc(100vh - 24px));
    border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); color: var(--text);
    box-shadow: var(--shadow); overflow: hidden;
  }
  .panel:popover-open { display: flex; flex-direction: column; }
  .head { display: flex; align-items: center; gap: 8px; padding: 10px 10px 0 14px; }
  h2 { flex: 1; margin: 0; font-size: 15px; font-weight: 650; letter-spacing: -0.01em; }
  .filters {
    display: flex; flex-wrap: wrap; align-items: center; gap: 6px; padding: 8px 14px 10px;
    border-bottom: 1px solid var(--line);
  }
  .filters button { border-radius: 99px; padding: 2px 10px; color: var(--muted); }
  .filters button[aria-pressed='true'] { background: var(--accent-soft); color: var(--accent); border-color: var(--accent); }
  .filters label { margin-left: auto; }
  .note {
    margin: 0; padding: 8px 14px; font-size: 12.5px; color: var(--muted); background: var(--sunken);
    border-bottom: 1px solid var(--line);
  }
  .list { flex: 1; min-height: 0; margin: 0; padding: 0; overflow-y: auto; overscroll-behavior: contain; list-style: none; }
  .item {
    display: grid; grid-template-columns: 8px 18px minmax(0, 1fr) auto; column-gap: 9px; padding: 11px 10px 11px 12px;
    border-bottom: 1px solid var(--line);
  }
  li:last-child > .item { border-bottom: 0; }
  .dot { width: 7px; height: 7px; margin-top: 7px; border-radius: 50%; background: var(--accent); }
  .mark { margin-top: 2px; }
  .title, .message { margin: 0; }
  .title, .message.alone { font-weight: 600; }
  .message { color: var(--muted); }
  .message.alone { color: var(--text); }
  .read .title, .read .message.alone { font-weight: 500; color: var(--muted); }
  .tools { display: flex; gap: 2px; align-items: start; margin-top: -4px; }
  .empty { margin: 0; padding: 32px 24px; text-align: center; color: var(--muted); }
  .foot { padding: 8px 14px; text-align: center; border-top: 1px solid var(--line); }
  @media (max-width: 480px) {
    .panel { left: 12px; right: 12px; width: auto; max-width: none; }
  }
`;
