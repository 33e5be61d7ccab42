import { css } from 'lit';

export const inboxPageStyles = css`
  bellwire-inbox-page .head { display: flex; align-items: center; gap: 8px; margin-bottom: 10px; }
  bellwire-inbox-page .head h1 { flex: 1; }
  .undo-line { display: flex; gap: 8px; align-items: center; margin: -4px 0 4px; min-height: 24px; }
  .undo-line .done { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; }
  .undo-line .undo { flex: none; }
  .item {
    display: grid; grid-template-columns: 8px 18px minmax(0, 1fr) auto; column-gap: 10px; padding: 11px 12px 11px 14px;
    border-bottom: 1px solid var(--line); cursor: default;
  }
  .item:focus-visible { outline-offset: -2px; }
  .item.current:is(.chosen, :focus-within) { background: var(--sunken); }
  .item .dot { width: 7px; height: 7px; margin-top: 7px; border-radius: 50%; background: var(--accent); }
  .item > .mark { margin-top: 2px; }
  .item .title, .item .message { margin: 0; }
  .item .title, .item .message.alone { font-weight: 600; }
  .item .message { color: var(--muted); max-width: 90ch; }
  .item .message.alone { color: var(--text); }
  .item .message.clamped { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; line-clamp: 3; overflow: hidden; }
  .item.read .title, .item.read .message.alone { font-weight: 500; color: var(--muted); }
  .item .tools { display: flex; gap: 2px; align-items: start; margin-top: -4px; }
  .item .text { overflow-wrap: anywhere; }
  @media (max-width: 760px) {
    .head > .keys { display: none; }
  }
`;
