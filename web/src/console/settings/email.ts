import { type TemplateResult, html, nothing } from 'lit';
import { isRecord } from '../../notification.ts';
import { explain, segment } from '../api.ts';
import type { Settings } from '../wire.ts';
import { type SettingsView, saved, section, toggle } from './section.ts';

/** The address, whether it is confirmed, and a test mail. */
export function emailSection(view: SettingsView): TemplateResult {
  const { email } = view.settings;
  const { isReadOnly } = view.workspace;
  const state = email.address === null ? nothing : email.confirmed ? html`<span class="v good"><span>confirmed</span></span>`
    : html`<span class="v held"><span>not confirmed yet</span></span>`;
  return section('Email', 'Notifications are also mailed, outside of quiet hours.', html`
    <form class="bar" @submit=${(event: SubmitEvent) => { void saveAddress(view, event); }}>
      <label class="hidden" for="address">Address</label>
      <input id="address" name="address" type="email" placeholder="you@example.org" .value=${email.address ?? ''} ?readonly=${isReadOnly} autocomplete="email">
      ${isReadOnly ? nothing : html`<button>Save address</button>`}${state}</form>
    ${email.address !== null && !email.confirmed && !isReadOnly ? confirmation(view) : nothing}
    <div class="bar"><span>Mail me</span>${toggle(view, 'Mail me', email.enabled, () => view.change('email', { email: { enabled: !email.enabled } }, { email: { enabled: email.enabled } }))}
      ${email.confirmed && !isReadOnly ? html`<button @click=${() => test(view)}>Send a test mail</button>` : nothing}</div>
    ${saved(view, 'email')}`);
}

function confirmation(view: SettingsView): TemplateResult {
  return html`<form class="bar" @submit=${(event: SubmitEvent) => { void confirm(view, event); }}>
    <label for="mailed-code">The code from the mail</label><input id="mailed-code" name="code" inputmode="numeric" autocomplete="one-time-code" size="8" required><button class="primary">Confirm</button></form>`;
}

function fieldOf(event: SubmitEvent, name: string): string {
  event.preventDefault();
  const field = (event.target as HTMLFormElement).elements.namedItem(name);
  return field instanceof HTMLInputElement ? field.value.trim() : '';
}

async function saveAddress(view: SettingsView, event: SubmitEvent): Promise<void> {
  const address = fieldOf(event, 'address');
  const before = view.settings.email.address;
  if (address === (before ?? '')) return;
  const change = { email: { address: address === '' ? null : address, enabled: address !== '' } };
  if (await view.change('email', change, { email: { address: before } }) && address !== '') view.note('email', 'Saved. Enter the code that was mailed to this address.');
}

async function confirm(view: SettingsView, event: SubmitEvent): Promise<void> {
  const code = fieldOf(event, 'code');
  try {
    view.replace((await view.workspace.api.json('POST', `/v1/users/${segment(view.workspace.person)}/email/confirm`, { code })) as Settings);
    view.note('email', 'Confirmed.');
  } catch (error) {
    view.note('email', explain('Not confirmed', error), true);
  }
}

async function test(view: SettingsView): Promise<void> {
  try {
    const body = await view.workspace.api.json('POST', `/v1/users/${segment(view.workspace.person)}/email/test`);
    const text = isRecord(body) && typeof body.message === 'string' ? body.message : 'Sent.';
    const accepted = isRecord(body) && body.outcome === 'accepted';
    view.note('email', text, !accepted);
  } catch (error) {
    view.note('email', explain('No test mail was sent', error), true);
  }
}
