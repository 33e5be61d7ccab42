import { type TemplateResult, html, nothing } from 'lit';
import { icon } from '../../elements/icons.ts';
import { type SettingsView, saved, section } from './section.ts';

/** The origins whose notifications go to the inbox only. */
export function mutedSection(view: SettingsView): TemplateResult {
  const { muted_origins: muted } = view.settings;
  const { isReadOnly, bellwire } = view.workspace;
  const known = [...new Set([...bellwire.inbox.get().items.values()].flatMap(({ origin }) => origin ?? []))].filter((origin) => !muted.includes(origin));
  const set = (next: readonly string[]): void => { void view.change('muted', { muted_origins: [...next] }, { muted_origins: muted }); };
  const add = (event: SubmitEvent): void => {
    event.preventDefault();
    const field = (event.target as HTMLFormElement).elements.namedItem('origin');
    if (!(field instanceof HTMLInputElement) || field.value.trim() === '') return;
    set([...new Set([...muted, field.value.trim()])]);
    field.value = '';
  };
  return section('Muted origins', 'What these agents send goes to the inbox only: no toast, no mail, no chat.', html`
    ${muted.length === 0 ? html`<p class="muted">None.</p>` : html`<ul class="tags">${muted.map((origin) => html`<li><bdi>${origin}</bdi>${isReadOnly ? nothing
      : html`<button class="icon" aria-label=${`Unmute ${origin}`} @click=${() => { set(muted.filter((other) => other !== origin)); }}>${icon('close', 14)}</button>`}</li>`)}</ul>`}
    ${isReadOnly ? nothing : html`<form class="bar" @submit=${add}><label class="hidden" for="origin">Origin</label>
      <input id="origin" name="origin" list="origins" placeholder="Origin, such as butler" autocomplete="off" maxlength="64">
      <datalist id="origins">${known.map((origin) => html`<option value=${origin}></option>`)}</datalist><button>Mute</button></form>`}
    ${saved(view, 'muted')}`);
}
