import { type TemplateResult, html, nothing } from 'lit';
import { explain, segment } from '../api.ts';
import { ago } from '../format.ts';
import { PageElement } from '../page.ts';
import type { SessionView } from '../wire.ts';

/** Where the person is signed in. */
export class SessionsElement extends PageElement {
  static override properties = { ...PageElement.properties, items: { state: true }, problem: { state: true } };

  declare items: readonly SessionView[] | null;
  declare problem: string | null;

  constructor() {
    super();
    [this.items, this.problem] = [null, null];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    void this.#load();
  }

  protected override render(): TemplateResult {
    return html`<div><h2>Sessions</h2><p class="muted">Where you are signed in. A session ends after 30 days, or after 7 days without use.</p></div>
      <div class="body">${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem}</p>`}
        ${this.items?.length === 0 ? html`<p class="muted">You use a token, so there is no session.</p>` : nothing}
        <ul class="sessions">${this.items?.map((session) => this.#row(session))}</ul></div>`;
  }

  #row({ id, name, current, used_at: used, created_at: created }: SessionView): TemplateResult {
    return html`<li><div><b><bdi>${name ?? 'Browser'}</bdi></b> ${current ? html`<span class="v good"><span>this one</span></span>` : nothing}
      <p class="muted small">since ${ago(created)} · used ${ago(used)}</p></div>
      <button @click=${() => this.#revoke(id)}>${current ? 'Sign out' : 'Revoke'}<span class="hidden"> ${name ?? ''}</span></button></li>`;
  }

  async #load(): Promise<void> {
    try {
      this.items = (await this.workspace.api.list<SessionView>('/v1/sessions')).items;
    } catch (error) {
      this.problem = explain('Sessions could not be loaded', error);
    }
  }

  async #revoke(id: string): Promise<void> {
    try {
      await this.workspace.api.json('DELETE', `/v1/sessions/${segment(id)}`);
      this.problem = null;
      await this.#load();
    } catch (error) {
      this.problem = explain('Not revoked', error);
    }
  }
}
