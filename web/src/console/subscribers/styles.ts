import { css } from 'lit';

export const subscriberStyles = css`
  bellwire-subscribers-page { padding: 0 !important; }
  .subscribers { flex: 1; min-height: 0; display: grid; grid-template-columns: minmax(0, 1fr); }
  .subscribers.chosen { grid-template-columns: minmax(0, 1fr) minmax(0, 1.2fr); }
  .subscribers .list { padding: 20px 24px 32px; }
  .subscribers bellwire-try-out { margin: 20px 24px 16px 0; padding-bottom: 0; }
  .subscriber { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 12px; padding: 12px 14px; margin-bottom: 8px; max-width: 900px; }
  .subscriber[aria-current] { border-color: var(--accent); }
  .subscriber .named { display: flex; flex-wrap: wrap; align-items: baseline; column-gap: 8px; }
  .subscriber .named .mono { font-weight: 400; }
  .subscriber p { margin: 3px 0 0; overflow-wrap: anywhere; }
  .subscriber .problem { padding: 0; }
  .subscriber .acts { position: relative; display: flex; flex-direction: column; align-items: flex-end; gap: 8px; }
  a.button {
    display: inline-block; font-size: 12.5px; font-weight: 550; color: var(--text); text-decoration: none; border: 1px solid var(--control);
    border-radius: 6px; padding: 3px 10px;
  }
  a.button:hover { background: var(--sunken); }
  button.switch {
    position: relative; display: flex; align-items: center; justify-content: flex-end; width: 40px; min-height: 24px; height: 24px; padding: 0 5px; border-radius: 99px;
    border: 1px solid var(--control); background: var(--sunken); color: var(--text);
  }
  .switch .knob { position: absolute; left: 3px; width: 16px; height: 16px; border-radius: 50%; background: var(--control); }
  .switch[aria-checked='true'] { background: var(--accent); border-color: var(--accent); color: var(--surface); justify-content: flex-start; }
  .switch[aria-checked='true'] .knob { left: auto; right: 3px; background: var(--surface); }
  .switch[aria-disabled='true'][aria-checked='true'] { background: var(--control); border-color: var(--control); color: var(--surface); }
  .tip {
    display: none; position: absolute; z-index: 2; right: 0; top: 28px; width: 220px; padding: 6px 9px; border-radius: 6px;
    background: var(--text); color: var(--bg);
  }
  .switch:focus-visible + .tip, .switch:hover + .tip { display: block; }
  .try-out { position: relative; }
  .try-out h2.part { margin-top: 0; padding-right: 32px; }
  .try-out .close { position: absolute; right: 10px; top: 10px; }
  .try-out label { font-weight: 600; }
  .try-out .problem { padding: 4px 0; }
  .two { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 16px; }
  .two > * { min-width: 0; }
  .two .minor + pre { margin-bottom: 12px; }
  @media (max-width: 1000px) {
    .subscribers.chosen { grid-template-columns: minmax(0, 1fr); }
    .subscribers.chosen { grid-template-rows: auto minmax(0, 1fr); }
    .subscribers.chosen .list.list { padding: 0; }
    .subscribers.chosen .list > :not(h1) { display: none; }
    .subscribers.chosen h1 { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    .subscribers bellwire-try-out { margin: 12px; }
    .subscribers .list { padding: 14px 12px 24px; }
  }
`;
