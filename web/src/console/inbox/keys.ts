import { type TemplateResult, html } from 'lit';

const KEYS: readonly (readonly [string, string])[] = [
  ['j', 'next'], ['k', 'previous'], ['Enter', 'open, and mark as read'], ['e', 'dismiss'], ['r', 'read or unread'], ['u', 'undo'],
  ['/', 'search'], ['F8', 'to the newest toast'], ['?', 'these keys'],
];

/** The list of keys, opened by «?». */
export function keysHelp(): TemplateResult {
  return html`<div id="keys" class="popover" popover="auto" role="dialog" aria-label="Keys"><h2 class="minor">Keys</h2>
    <table><tbody>${KEYS.map(([key, does]) => html`<tr><td><kbd>${key}</kbd></td><td>${does}</td></tr>`)}</tbody></table></div>`;
}
