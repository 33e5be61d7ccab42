import { type TemplateResult, html, nothing } from 'lit';
import { type Theme, chooseTheme, theme } from '../appearance.ts';
import { explain, segment } from '../api.ts';
import { PageElement } from '../page.ts';
import { desktopState, switchDesktop } from '../shell/desktop.ts';
import type { Settings, SettingsChange } from '../wire.ts';
import { emailSection } from './email.ts';
import { mutedSection } from './muted.ts';
import { quietSection } from './quiet-section.ts';
import { type SettingsView, saved, section, toggle } from './section.ts';

const THEMES: readonly (readonly [Theme, string])[] = [['system', 'As the system'], ['light', 'Light'], ['dark', 'Dark']];

/** What reaches the person, where and when. Every change is saved at once and can be undone. */
export class SettingsPage extends PageElement {
  static override properties = { ...PageElement.properties, settings: { state: true }, problem: { state: true }, notes: { state: true } };

  declare settings: Settings | null;
  declare problem: string | null;
  declare notes: SettingsView['notes'];

  constructor() {
    super();
    [this.settings, this.problem, this.notes] = [null, null, new Map()];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.watch(theme);
    void this.#load();
  }

  protected override render(): TemplateResult {
    const { settings, workspace } = this;
    const view = settings === null ? null : this.#view(settings);
    return html`<h1>Settings</h1><p class="sub">What reaches ${workspace.isReadOnly ? html`<bdi>${workspace.person}</bdi>` : 'you'}, where and when.
        ${workspace.isReadOnly ? 'Only the person can change it.' : 'Changes are saved at once.'}</p>
      ${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem} <button class="link" @click=${() => this.#load()}>Retry</button></p>`}
      ${view === null ? nothing : html`<div class="settings">
        ${emailSection(view)}
        <bellwire-telegram class="card pad part" .workspace=${workspace} .settings=${view.settings} .view=${view}></bellwire-telegram>
        ${quietSection(view)}${mutedSection(view)}${this.#toasts(view)}</div>`}
      <div class="settings">${workspace.isReadOnly ? nothing : this.#desktop()}${this.#theme()}
        ${workspace.isReadOnly ? nothing : html`<bellwire-sessions class="card pad part" .workspace=${workspace}></bellwire-sessions>`}</div>`;
  }

  #toasts(view: SettingsView): TemplateResult {
    const { enabled } = view.settings.toasts;
    return section('Toasts', 'Messages that an agent shows over the page. Without them, the same is in the inbox.', html`
      ${toggle(view, 'Show toasts', enabled, () => view.change('toasts', { toasts: { enabled: !enabled } }, { toasts: { enabled } }))}${saved(view, 'toasts')}`);
  }

  #desktop(): TemplateResult {
    const state = desktopState();
    const words = {
      on: '', off: '', blocked: 'Your browser blocks them for this page. Allow them in its settings, then switch this on.',
      insecure: 'Browsers allow them only on pages over HTTPS and on localhost.', unsupported: 'This browser has no desktop notifications.',
    }[state];
    const press = async (): Promise<void> => {
      await switchDesktop(state !== 'on');
      this.requestUpdate();
    };
    return section('Desktop notifications', 'For toasts, warnings and reminders while no tab of this page is visible; never in quiet hours. For this browser.', html`
      <button class="switch" role="switch" aria-label="Desktop notifications" aria-checked=${state === 'on' ? 'true' : 'false'}
        aria-disabled=${state === 'unsupported' || state === 'insecure' ? 'true' : 'false'} @click=${press}><span class="knob"></span></button>
      <p class="muted small" role="status">${words}</p>`);
  }

  #theme(): TemplateResult {
    return section('Theme', 'For this browser.', html`<div class="radios" role="radiogroup" aria-label="Theme">${THEMES.map(([value, name]) => html`<label>
      <input type="radio" name="theme" value=${value} .checked=${theme.get() === value} @change=${() => { chooseTheme(value); }}> ${name}</label>`)}</div>`);
  }

  #view(settings: Settings): SettingsView {
    return {
      settings, notes: this.notes, workspace: this.workspace,
      change: (name, change, undo) => this.#change(name, change, undo),
      replace: (next) => { this.settings = next; },
      note: (name, text, isProblem = false) => { this.notes = new Map([...this.notes, [name, { text, isProblem, undo: null }]]); },
    };
  }

  async #load(): Promise<void> {
    try {
      this.settings = await this.workspace.api.get<Settings>(this.#path());
      this.problem = null;
    } catch (error) {
      this.problem = explain('Settings could not be loaded', error);
    }
  }

  async #change(name: string, change: SettingsChange, undo: SettingsChange | null): Promise<boolean> {
    try {
      this.settings = (await this.workspace.api.json('PATCH', this.#path(), change)) as Settings;
      this.notes = new Map([...this.notes, [name, { text: 'Saved.', isProblem: false, undo: undo === null ? null : () => void this.#change(name, undo, null) }]]);
      return true;
    } catch (error) {
      this.notes = new Map([...this.notes, [name, { text: explain('Not saved', error), isProblem: true, undo: null }]]);
      return false;
    }
  }

  #path(): string {
    return `/v1/users/${segment(this.workspace.person)}/settings`;
  }
}
