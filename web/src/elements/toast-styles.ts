import { css } from 'lit';

export const toastStyles = css`
  :host {
    position: fixed !important; display: block !important; width: 0 !important; height: 0 !important;
    margin: 0 !important; padding: 0 !important; border: 0 !important;
  }
  .layer {
    position: fixed; inset: 0; width: auto; height: auto; max-width: none; max-height: none;
    --offset: var(--bellwire-offset, 20px);
    --top: var(--bellwire-offset-top, var(--offset));
    margin: 0; padding: var(--top) var(--offset) var(--offset); border: 0; overflow: hidden auto; scrollbar-width: none;
    background: none; color: inherit; pointer-events: none;
    --width: var(--bellwire-toast-width, 356px);
  }
  /* Where there are more toasts than fit, the layer scrolls. */
  .layer:popover-open { display: flex; flex-direction: column; align-items: flex-end; gap: 10px; }
  .stack {
    display: flex; flex-direction: column; gap: 10px; flex: none; width: var(--width); margin: 0; padding: 0;
    list-style: none;
  }
  .stack[data-position='top-center'] {
    position: absolute; top: var(--top); right: calc(50% - var(--width) / 2); padding-bottom: var(--offset);
  }
  /* Beside toasts at the right, the centre moves to the left. */
  .layer:has([data-position='top-right']) .stack[data-position='top-center'] {
    right: max(50% - var(--width) / 2, var(--width) + var(--offset) + 10px);
  }
  .stack[data-position='bottom-right'] { margin-top: auto; flex-direction: column-reverse; }
  .stack[data-expanded] { pointer-events: auto; }
  .stack > li { pointer-events: auto; flex: none; }
  .toast {
    position: relative; display: grid; grid-template-columns: 20px minmax(0, 1fr) 28px; column-gap: 10px;
    padding: 12px 10px 12px 14px; background: var(--surface); color: var(--text);
    border: 1px solid var(--line); border-left: 3px solid var(--edge); border-radius: var(--radius);
    box-shadow: var(--shadow); overflow: hidden; touch-action: pan-y;
  }
  .stack[data-position='top-center'] .toast { touch-action: pan-x; }
  .toast:focus-visible { outline-offset: -2px; }
  .toast[data-type='info'], .toast[data-type='reminder'] { --edge: var(--info); }
  .toast[data-type='success'] { --edge: var(--success); }
  .toast[data-type='warning'] { --edge: var(--warning); }
  .toast[data-type='error'] { --edge: var(--error); }
  .mark { margin-top: 1px; }
  .body { min-width: 0; }
  .title, .message { margin: 0; }
  .title, .message.alone { font-weight: 600; color: var(--text); }
  .message { color: var(--muted); }
  .title + .message { margin-top: 1px; }
  .message.clamped { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 6; line-clamp: 6; overflow: hidden; }
  .message.open { max-height: 50vh; overflow-y: auto; }
  /* Below the ×, the last lines have its column too. */
  .toast .actions, .toast .meta, .toast .hints, .toast .outcome { margin-right: -38px; }
  .close { align-self: start; margin: -4px 0 0; }
  .bar { position: absolute; left: 0; right: 0; bottom: 0; height: 2px; background: var(--edge); transform-origin: left; }
  .behind { display: flex; justify-content: center; position: relative; z-index: -1; margin-top: -16px; padding: 0 10px; }
  .stack[data-position='bottom-right'] > .behind { margin-top: 0; margin-bottom: -16px; }
  .behind button {
    width: 100%; min-height: 36px; padding: 10px 0 2px; text-align: center; font-size: 12px; color: var(--muted);
    background: var(--surface); border-color: var(--line); border-radius: var(--radius); box-shadow: var(--shadow);
  }
  .stack[data-position='bottom-right'] > .behind button { padding: 2px 0 10px; }
  /* Two columns do not fit: the centre is above the right. */
  @media (max-width: 780px) {
    .layer .stack[data-position='top-center'] { position: static; order: -1; align-self: center; padding: 0; }
  }
  @media (max-width: 480px) {
    .layer { --offset: var(--bellwire-offset, 12px); }
    .layer .stack[data-position] { width: auto; align-self: stretch; }
  }
  @media (prefers-reduced-motion: reduce) {
    .bar { display: none; }
  }
`;
