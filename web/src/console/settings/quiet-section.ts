import { type TemplateResult, html, nothing } from 'lit';
import type { BandChange } from './quiet-band.ts';
import { type QuietHours, describe } from './quiet-hours.ts';
import { type SettingsView, saved, section, toggle } from './section.ts';

/** What the band begins with. */
const FIRST = { start: '22:00', end: '07:00' };

/** The hours in which nothing is sent out of the hub. */
export function quietSection(view: SettingsView): TemplateResult {
  const quiet = view.settings.quiet_hours;
  const change = (next: QuietHours | null): void => { void view.change('quiet', { quiet_hours: next }, { quiet_hours: quiet }); };
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return section('Quiet hours', 'Nothing is mailed or sent to a chat then; it waits, and comes as one message afterwards.', html`
    <div class="bar"><span>Quiet hours</span>${toggle(view, 'Quiet hours', quiet !== null, () => { change(quiet === null ? { ...FIRST, timezone: zone } : null); })}</div>
    ${quiet === null ? nothing : html`
      <bellwire-quiet-band .quiet=${quiet} .isReadOnly=${view.workspace.isReadOnly}
        @change=${(event: CustomEvent<BandChange>) => { change({ ...quiet, ...event.detail }); }}></bellwire-quiet-band>
      <p class="quiet-now">${describe(quiet, Date.now())}</p>
      ${zoneField(view, quiet, change)}`}
    ${saved(view, 'quiet')}`);
}

function zoneField({ workspace }: SettingsView, quiet: QuietHours, change: (next: QuietHours) => void): TemplateResult {
  const changed = (event: Event): void => {
    const timezone = (event.target as HTMLInputElement).value.trim();
    if (timezone !== '' && timezone !== quiet.timezone) change({ ...quiet, timezone });
  };
  return html`<div class="bar"><label for="zone">Time zone</label>
    <input id="zone" list="zones" .value=${quiet.timezone} ?readonly=${workspace.isReadOnly} @change=${changed}>
    <datalist id="zones">${Intl.supportedValuesOf('timeZone').map((zone) => html`<option value=${zone}></option>`)}</datalist></div>`;
}
