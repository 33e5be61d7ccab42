import { type TemplateResult, html, nothing, svg } from 'lit';
import { encode } from 'uqr';
import { HubError } from '../../client/http.ts';
import { explain, segment } from '../api.ts';
import { until } from '../format.ts';
import { PageElement } from '../page.ts';
import type { Pairing, Settings } from '../wire.ts';
import { type SettingsView, saved, toggle } from './section.ts';

/** How often the page asks whether the chat is paired, in milliseconds. */
const POLL_MS = 1500;

/** Connects a Telegram chat: a link, a QR code for the phone, and the code itself. */
export class TelegramElement extends PageElement {
  static override properties = { ...PageElement.properties, settings: { attribute: false }, view: { attribute: false }, pairing: { state: true }, problem: { state: true } };

  declare settings: Settings;
  declare view: SettingsView;
  declare pairing: Pairing | null;
  declare problem: string | null;

  #timer: ReturnType<typeof setInterval> | undefined;

  constructor() {
    super();
    [this.pairing, this.problem] = [null, null];
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.#timer);
  }

  protected override render(): TemplateResult {
    const { telegram } = this.settings;
    const state = telegram.paired ? html`<span class="v good"><span>paired</span></span>` : nothing;
    return html`<div><h2>Telegram</h2><p class="muted">Notifications also go to a chat with the hub’s bot, and you can answer there.</p></div>
      <div class="body"><div class="bar">${state}
        ${telegram.paired ? html`<span>Write to me there</span>${toggle(this.view, 'Write to me on Telegram', telegram.enabled, () => this.view.change('telegram', { telegram: { enabled: !telegram.enabled } }, { telegram: { enabled: telegram.enabled } }))}` : nothing}
        ${this.workspace.isReadOnly ? nothing : html`<button class="pair" @click=${() => this.#pair()}>${telegram.paired ? 'Pair another chat' : 'Pair a chat'}</button>`}</div>
      ${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem}</p>`}
      ${this.pairing === null ? nothing : pairingView(this.pairing)}
      ${saved(this.view, 'telegram')}</div>`;
  }

  async #pair(): Promise<void> {
    const { api, person } = this.workspace;
    try {
      this.pairing = (await api.json('POST', `/v1/users/${segment(person)}/telegram/pair`)) as Pairing;
      this.problem = null;
      clearInterval(this.#timer);
      const before = this.settings.telegram.chat_id;
      this.#timer = setInterval(() => { void this.#look(before); }, POLL_MS);
    } catch (error) {
      const isOff = error instanceof HubError && (error.status === 404 || error.status === 409);
      this.problem = isOff ? 'This hub has no Telegram bot. Ask its operator to set telegram.token_file and to restart the hub.' : explain('No pairing code was made', error);
    }
  }

  async #look(before: number | null): Promise<void> {
    const { api, person } = this.workspace;
    const expired = this.pairing !== null && Date.parse(this.pairing.expires_at) < Date.now();
    const settings = await api.get<Settings>(`/v1/users/${segment(person)}/settings`).catch(() => null);
    const paired = settings !== null && settings.telegram.paired && settings.telegram.chat_id !== before;
    if (paired) {
      this.view.replace(settings);
      this.view.note('telegram', 'Paired.');
    }
    if (!paired && !expired) return;
    clearInterval(this.#timer);
    this.pairing = null;
    if (expired && !paired) this.problem = 'The code has expired. Get a new one.';
  }
}

function pairingView({ code, link, expires_at: expires }: Pairing): TemplateResult {
  return html`<div class="pairing">${link === null ? nothing : qrCode(link)}<div>
    <p>${link === null ? 'Open the bot’s chat and send:' : html`<a href=${link} target="_blank" rel="noreferrer">Open the chat</a>, or scan the code with your phone, and press Start. Or send:`}</p>
    <pre>/start ${code}</pre><p class="muted small">It works once, and expires ${until(expires)}.</p></div></div>`;
}

/** Drawn as one path, so that it needs neither styles nor a canvas. */
function qrCode(text: string): TemplateResult {
  const { data, size } = encode(text, { border: 2 });
  const squares = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${String(x)} ${String(y)}h1v1h-1z`] : [])));
  return html`<svg class="qr" viewBox=${`0 0 ${String(size)} ${String(size)}`} role="img" aria-label="QR code of the link">${svg`<path d=${squares.join('')} fill="#000"/>`}</svg>`;
}
