import { type TemplateResult, html, nothing } from 'lit';
import { explain } from '../api.ts';
import { consoleIcon } from '../icons.ts';
import { PageElement } from '../page.ts';
import { pathOf, to } from '../routes.ts';
import type { EventType, Tool } from '../wire.ts';
import { isRecord } from '../../notification.ts';
import { curlOf } from './curl.ts';
import { type Values, form } from './form.ts';
import { type Address, type Call, type Subject, callOf, eventSubjects, toolSubject } from './request.ts';

/** Each tool and event as a form, the JSON it makes, the answer, and a command that does the same. */
export class PlaygroundPage extends PageElement {
  static override properties = {
    ...PageElement.properties, subjects: { state: true }, values: { state: true }, address: { state: true }, answer: { state: true }, problem: { state: true }, copied: { state: true },
  };

  /** Null until they are loaded. */
  declare subjects: readonly Subject[] | null;
  declare values: Values;
  declare address: Address;
  declare answer: unknown;
  declare problem: string | null;
  declare copied: boolean;

  #subject: Subject | null = null;

  constructor() {
    super();
    [this.subjects, this.values, this.answer, this.problem, this.copied] = [null, {}, null, null, false];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const { session, person } = this.workspace;
    this.address = { user: session.user ?? person, conversation: 'chat' };
    void this.#load();
  }

  protected override willUpdate(): void {
    const wanted = this.route.id ?? this.subjects?.[0]?.name;
    const subject = this.subjects?.find(({ name }) => name === wanted) ?? null;
    if (subject === null || subject.name === this.#subject?.name) return;
    this.#subject = subject;
    [this.values, this.answer, this.problem] = [subject.first, null, null];
  }

  protected override render(): TemplateResult {
    const [subject, { problem }] = [this.#subject, this];
    const title = html`<h1>Playground</h1><p class="sub">Call a tool as an agent would, or publish an event. Both take effect at once.</p>`;
    if (this.subjects === null) return html`${title}${problem === null ? nothing : html`<p class="problem" role="alert">${problem} <button class="link" @click=${() => this.#load()}>Retry</button></p>`}`;
    return html`${title}
      <div class="bar"><label for="subject">Send</label>${this.#picker(subject)}</div>
      ${subject === null ? html`<p class="empty">There is no such tool or event.</p>` : this.#body(subject, callOf(subject, this.values, this.address))}`;
  }

  #picker(subject: Subject | null): TemplateResult {
    const options = (kind: Subject['kind']): TemplateResult[] => (this.subjects ?? []).filter((one) => one.kind === kind).map(({ name }) =>
      html`<option value=${name} ?selected=${name === subject?.name}>${name}</option>`);
    return html`<select id="subject" @change=${(event: Event) => { this.go(to('playground', (event.target as HTMLSelectElement).value)); }}>
      <optgroup label="Tools">${options('tool')}</optgroup><optgroup label="Events">${options('event')}</optgroup></select>`;
  }

  #body(subject: Subject, call: Call): TemplateResult {
    const curl = curlOf(location.origin, call.path, call.body);
    return html`<p class="muted">${subject.about}</p><div class="two play">
      <form @submit=${(event: SubmitEvent) => { event.preventDefault(); void this.#send(call); }}>
        ${this.#addressFields()}
        ${form(subject.fields, this.values, (values) => { this.values = values; })}
        <button class="primary">${subject.kind === 'tool' ? 'Call the tool' : 'Publish the event'}</button>
      </form>
      <div><h2 class="minor">Request</h2><pre class="mono request" tabindex="0">POST ${call.path}
${JSON.stringify(call.body, null, 2)}</pre>
        <h2 class="minor">Answer</h2><div role="status">${this.problem === null ? nothing : html`<p class="problem">${this.problem}</p>`}
          ${this.answer === null ? html`<p class="muted">Not sent yet.</p>` : html`<pre class="mono answer" tabindex="0">${JSON.stringify(this.answer, null, 2)}</pre>${this.#traceLinks()}`}</div>
        <h2 class="minor">curl ${this.#copyButton(curl)}</h2>
        <pre class="mono curl" tabindex="0">${curl}</pre></div></div>`;
  }

  #addressFields(): TemplateResult {
    const set = (change: Partial<Address>): void => { this.address = { ...this.address, ...change }; };
    const field = (name: keyof Address, label: string): TemplateResult => html`<div class="row"><label for=${name}>${label}</label>
      <input id=${name} .value=${this.address[name]} @input=${(event: Event) => { set({ [name]: (event.target as HTMLInputElement).value.trim() }); }}></div>`;
    const { user } = this.workspace.session;
    // A session acts for its own person only.
    const person = user === null ? field('user', 'For the person') : html`<div class="row"><label for="user">For the person</label>
      <input id="user" readonly aria-describedby="user-about" .value=${user}></div>`;
    return html`<div class="address">${person}${field('conversation', 'In the conversation')}</div>
      ${user === null ? nothing : html`<p class="muted small address-about" id="user-about">You can view others, and act only as yourself. For others, run the curl command with an admin token.</p>`}`;
  }

  #traceLinks(): TemplateResult | typeof nothing {
    const events: unknown[] = isRecord(this.answer) && Array.isArray(this.answer.events) ? this.answer.events : [];
    const links = events.filter(isRecord).map(({ event_id: id }) => (typeof id === 'string' ? html`<a href=${pathOf(to('live', id))}>See its trace</a>` : nothing));
    return links.length === 0 ? nothing : html`<p>${links}</p>`;
  }

  async #load(): Promise<void> {
    try {
      const { api } = this.workspace;
      const [tools, types] = await Promise.all([api.list<Tool>('/v1/tools'), api.list<EventType>('/v1/event_types')]);
      [this.subjects, this.problem] = [[...tools.items.map(toolSubject), ...eventSubjects(types.items)], null];
    } catch (error) {
      this.problem = explain('The tools and event types could not be listed', error);
    }
  }

  async #send({ path, body }: Call): Promise<void> {
    try {
      this.answer = await this.workspace.api.json('POST', path, body);
      this.problem = null;
    } catch (error) {
      [this.answer, this.problem] = [null, explain('Refused', error)];
    }
  }

  #copyButton(text: string): TemplateResult | typeof nothing {
    // Browsers offer the clipboard only to secure pages.
    if (!('clipboard' in navigator)) return nothing;
    return html`<button class="link copy" @click=${() => this.#copy(text)}>${consoleIcon('copy', 13)} ${this.copied ? 'Copied' : 'Copy'}</button>`;
  }

  async #copy(text: string): Promise<void> {
    this.copied = await navigator.clipboard.writeText(text).then(() => true, () => false);
    setTimeout(() => { this.copied = false; }, 1500);
  }
}
