// The severity of an event by icon, word and colour.
import { type TemplateResult, html } from 'lit';
import { icon } from '../elements/icons.ts';
import type { Severity } from './wire.ts';

const ICONS = { debug: 'info', info: 'info', warning: 'warning', error: 'error', critical: 'error' } as const satisfies Record<Severity, string>;

/** The icon in its colour, and the word for those who do not see it. */
export function severityMark(severity: Severity): TemplateResult {
  return html`<span class=${`sev ${severity}`} title=${severity}>${icon(ICONS[severity], 15)}</span><span class="hidden">${severity}: </span>`;
}
