import { type TemplateResult, html, nothing } from 'lit';
import { icon } from '../../elements/icons.ts';
import { explain, segment } from '../api.ts';
import { plural } from '../format.ts';
import { PageElement } from '../page.ts';
import { to } from '../routes.ts';
import type { DryRunResult, EventType, Subscriber } from '../wire.ts';
import { samplesFor } from './samples.ts';

/** How long a person may pause while typing, in milliseconds. */
const PAUSE_MS = 250;

/** Sample events at the left, the rendered text and its tokens at the right. Nothing is stored. */
export class TryOut extends PageElement {
  static override properties = { ...PageElement.properties, subscriber: { attribute: false }, result: { state: true }, problem: { state: true } };

  declare subscriber: Subscriber;
  declare result: DryRunResult | null;
  declare problem: string | null;

  #text = '';
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    [this.result, this.problem] = [null, null];
  }

  protected override willUpdate(changed: Map<string, unknown>): void {
    const before = changed.get('subscriber') as Subscriber | undefined;
    if (!changed.has('subscriber') || before?.id === this.subscriber.id) return;
    void this.#start(this.subscriber);
  }

  async #start(subscriber: Subscriber): Promise<void> {
    try {
      const { items } = await this.workspace.api.list<EventType>('/v1/event_types');
      if (subscriber.id !== this.subscriber.id) return;
      this.#text = JSON.stringify(samplesFor(subscriber, items), null, 2);
      this.requestUpdate();
      await this.#run();
    } catch (error) {
      this.problem = explain('The event types could not be listed', error);
    }
  }

  protected override render(): TemplateResult {
    const { result, problem, subscriber } = this;
    const tokens = result?.tokens ?? null;
    return html`<div class="pad try-out"><button class="icon close" aria-label="Close the try-out" @click=${() => { this.go(to('subscribers')); }}>${icon('close')}</button>
      <h2 class="part">Try out ${subscriber.name}</h2><p class="muted small">Nothing is stored or sent.</p>
      <div class="two"><div><label for="samples">Sample events</label>
        <textarea id="samples" class="mono" rows="18" spellcheck="false" .value=${this.#text} @input=${this.#typed}
          aria-invalid=${problem === null ? 'false' : 'true'} aria-describedby="try-problem"></textarea>
        <p id="try-problem" class="problem" role="alert">${problem ?? nothing}</p></div>
      <div role="status"><h2 class="minor">What the agent reads${tokens === null ? nothing : html` <span class="muted small">${plural(tokens, 'token')}</span>`}</h2>
        ${result?.problem ? html`<p class="problem">${result.problem}</p>` : nothing}
        <pre class="mono" tabindex="0">${result?.content ?? '–'}</pre>
        ${result?.content_user ? html`<h2 class="minor">What the person reads</h2><pre tabindex="0">${result.content_user}</pre>` : nothing}</div></div></div>`;
  }

  #typed(event: Event): void {
    this.#text = (event.target as HTMLTextAreaElement).value;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => { void this.#run(); }, PAUSE_MS);
  }

  async #run(): Promise<void> {
    let events: unknown;
    try {
      events = JSON.parse(this.#text);
    } catch (error) {
      this.problem = `This is not JSON: ${error instanceof Error ? error.message : ''}`;
      return;
    }
    const text = this.#text;
    try {
      const body = { events: Array.isArray(events) ? events : [events] };
      const result = (await this.workspace.api.json('POST', `/v1/subscribers/${segment(this.subscriber.id)}/test`, body)) as DryRunResult;
      if (text === this.#text) [this.result, this.problem] = [result, null];
    } catch (error) {
      this.problem = explain('Not rendered', error);
    }
  }
}
