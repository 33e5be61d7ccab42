import { LitElement, type TemplateResult, html, nothing } from 'lit';
import { icon } from '../../elements/icons.ts';
import type { Sessions } from '../session.ts';

/** Shown without a session: how to get a link, and a field for a token. */
export class SignInElement extends LitElement {
  static override properties = { sessions: { attribute: false }, reason: {}, problem: { state: true }, busy: { state: true } };

  declare sessions: Sessions;
  declare reason: string | null;
  declare problem: string | null;
  declare busy: boolean;

  constructor() {
    super();
    this.reason = null;
    this.problem = null;
    this.busy = false;
  }

  protected override createRenderRoot(): this {
    return this;
  }

  protected override render(): TemplateResult {
    return html`<main class="sign-in"><div class="card pad">
      <div class="brand">${icon('bell', 20)} Bellwire</div>
      <h1>Sign in</h1>
      ${this.reason === null ? nothing : html`<p class="reason" role="status">${this.reason}</p>`}
      <p>Run this where the hub runs, then open the link it prints. The link works once, for ten minutes.</p>
      <pre>bellwire token link ada</pre>
      <p class="muted small">Write your name instead of ada. <code>--admin</code> makes an operator’s link.</p>
      <form @submit=${this.#submit}>
        <label for="token">Or use a token of scope user or admin</label>
        <div class="bar"><input id="token" name="token" type="password" autocomplete="off" spellcheck="false" required
          placeholder="bw_…" aria-describedby="token-problem" aria-invalid=${this.problem === null ? 'false' : 'true'}>
          <button class="primary" aria-disabled=${this.busy ? 'true' : 'false'}>Sign in</button></div>
        <p id="token-problem" class="problem" role="alert">${this.problem ?? nothing}</p>
      </form></div></main>`;
  }

  async #submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const field = (event.target as HTMLFormElement).elements.namedItem('token');
    if (!(field instanceof HTMLInputElement) || this.busy) return;
    this.busy = true;
    this.problem = await this.sessions.signInByToken(field.value.trim());
    this.busy = false;
    if (this.problem !== null) field.focus();
  }
}
