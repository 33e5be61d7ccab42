import { css } from 'lit';

/** The variables that a page can set, on `:root` or on an element. */
export const VARIABLES = [
  '--bellwire-surface', '--bellwire-sunken', '--bellwire-text', '--bellwire-muted', '--bellwire-line', '--bellwire-control',
  '--bellwire-accent', '--bellwire-accent-soft', '--bellwire-focus', '--bellwire-info', '--bellwire-success',
  '--bellwire-warning', '--bellwire-error', '--bellwire-radius', '--bellwire-shadow', '--bellwire-font',
  '--bellwire-toast-width', '--bellwire-offset', '--bellwire-offset-top',
] as const;

const light = css`
  color-scheme: light;
  --surface: var(--bellwire-surface, #fff);
  --sunken: var(--bellwire-sunken, #f4f4f2);
  --text: var(--bellwire-text, #1c1b19);
  --muted: var(--bellwire-muted, #65625c);
  --line: var(--bellwire-line, #e6e5e1);
  --control: var(--bellwire-control, #8a867e);
  --accent: var(--bellwire-accent, #0f766e);
  --accent-soft: var(--bellwire-accent-soft, #e3f2ef);
  --focus: var(--bellwire-focus, #0f766e);
  --info: var(--bellwire-info, #0369a1);
  --success: var(--bellwire-success, #047857);
  --warning: var(--bellwire-warning, #9a5b00);
  --error: var(--bellwire-error, #be123c);
  --shadow: var(--bellwire-shadow, 0 1px 2px #0000000d, 0 8px 24px #00000014);
`;

const dark = css`
  color-scheme: dark;
  --surface: var(--bellwire-surface, #1b1b1a);
  --sunken: var(--bellwire-sunken, #111110);
  --text: var(--bellwire-text, #edece8);
  --muted: var(--bellwire-muted, #a3a099);
  --line: var(--bellwire-line, #2c2b29);
  --control: var(--bellwire-control, #827f78);
  --accent: var(--bellwire-accent, #5eead4);
  --accent-soft: var(--bellwire-accent-soft, #123330);
  --focus: var(--bellwire-focus, #5eead4);
  --info: var(--bellwire-info, #7cc7f2);
  --success: var(--bellwire-success, #6ee7b7);
  --warning: var(--bellwire-warning, #fbbf5d);
  --error: var(--bellwire-error, #fda4b5);
  --shadow: var(--bellwire-shadow, 0 1px 2px #0006, 0 10px 28px #0009);
`;

/** The colours by the system's setting, unless the attribute `theme` says `light` or `dark`; and what all elements share. */
export const theme = css`
  :host { ${light} }
  @media (prefers-color-scheme: dark) {
    :host(:not([theme='light'])) { ${dark} }
  }
  :host([theme='dark']) { ${dark} }
  :host {
    --radius: var(--bellwire-radius, 8px);
    font: 14px/1.45 var(--bellwire-font, ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif);
    font-variant-numeric: tabular-nums;
    letter-spacing: normal;
    text-align: start;
    text-transform: none;
    color: var(--text);
  }
  :host([hidden]) { display: none; }
  *, ::before, ::after { box-sizing: border-box; }
  button, select {
    font: inherit;
    font-size: 12.5px;
    font-weight: 550;
    color: var(--text);
    background: var(--surface);
    border: 1px solid var(--control);
    border-radius: 6px;
    padding: 4px 10px;
    min-height: 28px;
    cursor: pointer;
  }
  button:hover { background: var(--sunken); }
  button.primary { color: var(--surface); background: var(--text); border-color: var(--text); }
  button.primary:hover { opacity: 0.88; }
  button[aria-disabled='true'] {
    cursor: default; color: var(--muted); background: var(--sunken); border-color: var(--control); opacity: 1;
  }
  button.icon {
    display: inline-grid; place-items: center; min-width: 28px; padding: 0; border: 0; background: none;
    color: var(--muted);
  }
  button.icon:hover { color: var(--text); background: var(--sunken); }
  button.link {
    border: 0; background: none; padding: 0; min-height: 24px; color: var(--accent); text-decoration: underline;
    text-underline-offset: 2px;
  }
  :focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
  svg { display: block; }
  [data-type='info'] > .mark, [data-type='reminder'] > .mark { color: var(--info); }
  [data-type='success'] > .mark { color: var(--success); }
  [data-type='warning'] > .mark { color: var(--warning); }
  [data-type='error'] > .mark { color: var(--error); }
  .hidden {
    position: absolute; width: 1px; height: 1px; margin: -1px; padding: 0; border: 0;
    overflow: hidden; clip-path: inset(50%); white-space: nowrap;
  }
  .text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
  .actions { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 9px; }
  .actions button { max-width: 100%; overflow-wrap: anywhere; text-align: start; }
  .meta { margin: 6px 0 0; font-size: 12px; color: var(--muted); overflow-wrap: anywhere; }
  .hints { margin: 6px 0 0; padding: 0; list-style: none; font-size: 12px; color: var(--muted); overflow-wrap: anywhere; }
  .outcome {
    display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin-top: 9px; font-size: 12.5px; font-weight: 550;
  }
  .outcome.failed { color: var(--error); }
  @media (forced-colors: active) {
    button { border: 1px solid ButtonText; }
  }
`;
