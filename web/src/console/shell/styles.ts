import { css } from 'lit';

const light = css`
  --bg: #fbfbfa; --info-soft: #e6f3fb; --success-soft: #e5f5ee; --warning-soft: #fdf1dc; --error-soft: #fde9ee;
`;
const dark = css`
  --bg: #141413; --info-soft: #10293a; --success-soft: #0f2d22; --warning-soft: #33260d; --error-soft: #3a1620;
`;

/** The frame of the console, and what all pages share. */
export const shellStyles = css`
  :host { display: block; ${light} }
  @media (prefers-color-scheme: dark) {
    :host(:not([theme='light'])) { ${dark} }
  }
  :host([theme='dark']) { ${dark} }
  .app { display: grid; grid-template-columns: 208px minmax(0, 1fr); height: 100vh; height: 100dvh; background: var(--bg); }
  .rail {
    display: flex; flex-direction: column; gap: 2px; padding: 16px 10px 12px; overflow-y: auto;
    border-right: 1px solid var(--line); background: var(--sunken);
  }
  .brand { display: flex; align-items: center; gap: 8px; padding: 2px 8px 14px; font-weight: 650; letter-spacing: -0.01em; }
  .brand svg { color: var(--accent); }
  .rail h2 { margin: 14px 8px 4px; font-size: 11px; font-weight: 600; letter-spacing: 0.05em; text-transform: uppercase; color: var(--muted); }
  .rail a {
    display: flex; align-items: center; gap: 9px; padding: 6px 8px; border-radius: 6px; color: var(--muted);
    text-decoration: none;
  }
  .rail a:hover { color: var(--text); }
  .rail a[aria-current] { background: var(--surface); color: var(--text); box-shadow: 0 0 0 1px var(--line); font-weight: 550; }
  .count {
    margin-left: auto; padding: 0 7px; border-radius: 99px; font-size: 11px; font-weight: 650; line-height: 17px;
    background: var(--accent); color: var(--surface);
  }
  .rail .foot { margin-top: auto; padding-top: 12px; display: grid; gap: 6px; }
  .viewing { display: grid; gap: 2px; padding: 0 8px; font-size: 12px; color: var(--muted); }
  .viewing input { min-width: 0; width: 100%; }
  .who { display: flex; align-items: center; gap: 6px; padding: 0 0 0 8px; font-size: 12.5px; color: var(--muted); }
  .who bdi { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
  .stage { display: flex; flex-direction: column; min-width: 0; min-height: 0; }
  .line {
    margin: 0; padding: 5px 24px; font-size: 12.5px; color: var(--muted); background: var(--sunken);
    border-bottom: 1px solid var(--line);
  }
  main { flex: 1; min-height: 0; display: flex; flex-direction: column; }
  main > * { flex: 1; min-height: 0; display: flex; flex-direction: column; padding: 20px 24px 0; }
  main > .scrolls, .scrolls { overflow-y: auto; padding-bottom: 32px; display: block; }
  .more { display: none; }
  @media (max-width: 760px) {
    .app { grid-template-columns: minmax(0, 1fr); grid-template-rows: minmax(0, 1fr) auto; }
    .stage { order: -1; }
    .rail {
      flex-direction: row; gap: 0; padding: 4px 4px calc(4px + env(safe-area-inset-bottom)); overflow: visible;
      border-right: 0; border-top: 1px solid var(--line); position: relative;
    }
    .rail .brand, .rail h2 { display: none; }
    .rail a {
      position: relative; flex: 1 1 auto; flex-direction: column; gap: 2px; padding: 5px 4px; min-width: 0; font-size: 10.5px;
      letter-spacing: -0.02em; text-align: center;
    }
    .rail a .count { position: absolute; top: 0; left: calc(50% + 4px); padding: 0 5px; }
    .rail .secondary:not([aria-current]) { display: none; }
    .rail .foot { display: none; }
    .more { display: flex; flex: 1; }
    .more > summary {
      flex: 1; display: flex; flex-direction: column; align-items: center; gap: 2px; padding: 5px 2px; font-size: 10.5px;
      color: var(--muted); list-style: none; cursor: pointer; border-radius: 6px;
    }
    .more > summary::-webkit-details-marker { display: none; }
    .more > .sheet {
      position: absolute; right: 8px; bottom: calc(100% + 8px); z-index: 3; width: 240px; padding: 8px; display: grid; gap: 2px;
      background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow);
    }
    .more > .sheet a { flex-direction: row; gap: 9px; padding: 9px 8px; font-size: 14px; text-align: start; }
    .rail .sheet .foot { display: grid; margin: 4px 0 0; padding: 8px 0 0; border-top: 1px solid var(--line); }
    .line { padding: 5px 12px; }
    main > * { padding: 14px 12px 0; }
    .bar input[type='search'] { flex: 1 1 100%; }
  }
`;

/** Headings, cards, tables, fields and notes. */
export const partStyles = css`
  h1 { margin: 0; font-size: 19px; font-weight: 650; letter-spacing: -0.015em; }
  h2.part { margin: 22px 0 8px; font-size: 15px; font-weight: 650; }
  h2.minor { margin: 0; font-size: 14px; font-weight: 600; overflow-wrap: anywhere; }
  .sub { margin: 2px 0 14px; color: var(--muted); max-width: 72ch; }
  .bar { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin-bottom: 10px; }
  .bar .end { margin-left: auto; }
  .chips { display: flex; flex-wrap: wrap; gap: 6px; }
  .chips button { border-radius: 99px; padding: 2px 10px; color: var(--muted); }
  .chips button[aria-pressed='true'] { background: var(--accent-soft); color: var(--accent); border-color: var(--accent); }
  input, textarea {
    font: inherit; color: var(--text); background: var(--surface); border: 1px solid var(--control); border-radius: 6px;
    padding: 4px 10px; min-height: 28px;
  }
  input::placeholder, textarea::placeholder { color: var(--muted); opacity: 1; }
  input[type='checkbox'] { min-height: 0; accent-color: var(--accent); }
  input[type='search'] { width: 260px; max-width: 100%; }
  textarea { width: 100%; resize: vertical; }
  .mono, pre, code { font: 12.5px/1.5 ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace; }
  pre {
    margin: 8px 0 0; padding: 9px 11px; overflow: auto; background: var(--sunken); border: 1px solid var(--line);
    border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere;
  }
  .card { background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
  .card.fill { flex: 1; min-height: 0; display: flex; flex-direction: column; overflow: hidden; margin-bottom: 16px; }
  .pad { padding: 14px 16px; }
  bellwire-rows { display: block; flex: 1; min-height: 0; overflow-y: auto; overflow-anchor: none; overscroll-behavior: contain; }
  .empty { margin: 0; padding: 40px 24px; text-align: center; color: var(--muted); }
  .empty code, .sub code { color: var(--text); }
  .problem { margin: 0; padding: 8px 14px; color: var(--error); overflow-wrap: anywhere; }
  .saved { color: var(--success); font-size: 12.5px; font-weight: 550; }
  .muted { color: var(--muted); }
  .small { font-size: 12px; }
  .v {
    display: inline-flex; align-items: center; gap: 5px; max-width: 100%; padding: 1px 7px; border-radius: 5px; font-size: 12px;
    font-weight: 550; background: var(--sunken); color: var(--muted); white-space: nowrap;
  }
  .v > span { overflow: hidden; text-overflow: ellipsis; }
  .v.good { background: var(--success-soft); color: var(--success); }
  .v.held { background: var(--warning-soft); color: var(--warning); }
  .v.waits { background: var(--info-soft); color: var(--info); }
  .v.bad { background: var(--error-soft); color: var(--error); }
  .sev { display: inline-flex; flex: none; color: var(--muted); }
  .sev.info { color: var(--info); }
  .sev.warning { color: var(--warning); }
  .sev.error, .sev.critical { color: var(--error); }
  .sev.critical > svg { stroke-width: 3; }
  a { color: var(--accent); text-underline-offset: 2px; }
  table { width: 100%; border-collapse: collapse; font-size: 13px; }
  th { padding: 8px 12px; font-size: 11.5px; font-weight: 550; color: var(--muted); text-align: start; border-bottom: 1px solid var(--line); }
  td { padding: 7px 12px; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
  tr:last-child td { border-bottom: 0; }
  .scroll-x { overflow-x: auto; }
  kbd {
    display: inline-block; min-width: 20px; padding: 0 5px; border: 1px solid var(--control); border-radius: 4px; text-align: center;
    font: 12px/18px ui-monospace, Menlo, 'DejaVu Sans Mono', monospace; background: var(--surface);
  }
  .confirm { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin-top: 8px; padding: 8px 10px; border-radius: 6px; background: var(--warning-soft); color: var(--text); }
  button.danger { color: var(--error); border-color: var(--error); }
  .popover {
    position: fixed; inset: 0; margin: auto; width: min(420px, calc(100vw - 24px)); height: fit-content; padding: 16px 18px;
    background: var(--surface); color: var(--text); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow);
  }
`;
