import { type TemplateResult, html, nothing } from 'lit';
import { explain, segment } from '../api.ts';
import { plural, shortTime, until } from '../format.ts';
import { PagedList } from '../list/paged.ts';
import type { RowList } from '../list/rows.ts';
import { PageElement } from '../page.ts';
import type { Delivery, Page } from '../wire.ts';
import { LOOKS, type State, about, canCancel, canRetry, cancelQuestion, retryQuestion, route } from './words.ts';

const PAGE = 100;
const FILTERS: readonly (readonly [State | null, string])[] = [[null, 'All'], ['failed', 'Dead letters'], ['waiting', 'Waiting'], ['unknown', 'Unknown'], ['sent', 'Sent']];
/** The cursor at which the list goes on after the dead letters. */
const REST = 'rest:';

/** What is sent out of the hub: dead letters first. */
export class DeliveriesPage extends PageElement {
  static override properties = { ...PageElement.properties, state: { state: true }, asked: { state: true }, ledger: { state: true }, answers: { state: true } };

  declare state: State | null;
  /** The question that is open, and for which delivery. */
  declare asked: { readonly id: string; readonly action: 'retry' | 'cancel' } | null;
  /** What became of a retry or a cancellation, by delivery. */
  declare answers: ReadonlyMap<string, string>;

  /** Whether the ledger is shown instead. */
  declare ledger: boolean;

  #list: PagedList<Delivery> | null = null;

  constructor() {
    super();
    [this.state, this.asked, this.ledger, this.answers] = [null, null, false, new Map()];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#list = new PagedList<Delivery>((cursor) => this.#load(cursor), ({ id }) => id);
    this.watch(this.#list.state);
    void this.#list.more();
  }

  protected override render(): TemplateResult {
    const chip = (name: string, pressed: boolean, press: () => void): TemplateResult =>
      html`<button aria-pressed=${pressed ? 'true' : 'false'} @click=${press}>${name}</button>`;
    return html`<h1>Deliveries</h1><p class="sub">What the hub sends by email, Telegram and other channels. Dead letters come first: the hub has given them up.</p>
      <div class="bar"><div class="chips" role="group" aria-label="Show">
        ${FILTERS.map(([state, name]) => chip(name, !this.ledger && this.state === state, () => { this.#choose(state); }))}
        ${chip('Ledger by origin', this.ledger, () => { this.ledger = true; })}</div>
        ${this.ledger ? nothing : html`<button class="end" @click=${() => this.#list?.reload()}>Refresh</button>`}</div>
      ${this.ledger ? html`<bellwire-ledger class="scrolls" .workspace=${this.workspace}></bellwire-ledger>` : this.#body()}`;
  }

  #body(): TemplateResult {
    const pages = this.#list?.state.get();
    return html`${pages?.problem ? html`<p class="problem" role="alert">${pages.problem} <button class="link" @click=${() => this.#list?.more()}>Retry</button></p>` : nothing}
      <div class="card fill">${pages?.loaded && pages.items.length === 0 ? this.#empty() : html`<bellwire-rows .list=${this.#rows(pages?.items ?? [])} .estimate=${62}
        label="Deliveries" @near-end=${() => { this.#nearEnd(); }}></bellwire-rows>`}</div>`;
  }

  #empty(): TemplateResult {
    return this.state === null
      ? html`<p class="empty">Nothing was sent yet. A person who confirmed an address in Settings gets mail when an agent notifies them.</p>`
      : html`<p class="empty">${this.state === 'failed' ? 'No dead letters.' : 'Nothing in this state.'}</p>`;
  }

  #rows(items: readonly Delivery[]): RowList<Delivery> {
    return { items, key: ({ id }) => id, row: (delivery) => this.#row(delivery) };
  }

  #row(delivery: Delivery): TemplateResult {
    const { id, state, reason, attempts, not_before: next, created_at: created, ended_at: ended } = delivery;
    const when = ended !== null ? `ended ${shortTime(ended)}` : `next attempt ${until(next)} (${shortTime(next)})`;
    const answer = this.answers.get(id);
    return html`<div class="delivery" role="listitem" data-key=${id} data-state=${state}>
      <span class=${`v ${LOOKS[state]}`}><span>${state}</span></span>
      <div class="what"><b class="about" dir="auto">${about(delivery)}</b>
        <p class="muted"><bdi>${route(delivery)}</bdi></p>
        ${reason === null || reason === '' ? nothing : html`<p class=${state === 'failed' ? 'why error' : 'why'} dir="auto">${reason}</p>`}
        <p class="muted small">${plural(attempts, 'attempt')} · ${when} · planned ${shortTime(created)}</p>
        ${answer === undefined ? nothing : html`<p class="small" role="status">${answer}</p>`}
        ${this.asked?.id === id ? this.#question(delivery, this.asked.action) : nothing}</div>
      <div class="acts">${canRetry(delivery) ? html`<button @click=${() => { this.asked = { id, action: 'retry' }; }}>Retry…</button>` : nothing}
        ${canCancel(delivery) ? html`<button @click=${() => { this.asked = { id, action: 'cancel' }; }}>Cancel…</button>` : nothing}</div>
    </div>`;
  }

  #question(delivery: Delivery, action: 'retry' | 'cancel'): TemplateResult {
    const text = action === 'retry' ? retryQuestion(delivery) : cancelQuestion(delivery);
    return html`<div class="confirm" role="group" aria-label="Confirm"><span>${text}</span>
      <button class="primary" @click=${() => this.#act(delivery, action)}>${action === 'retry' ? 'Send again' : 'Do not send'}</button>
      <button @click=${() => { this.asked = null; }}>Back</button></div>`;
  }

  async #act({ id }: Delivery, action: 'retry' | 'cancel'): Promise<void> {
    this.asked = null;
    try {
      const changed = (await this.workspace.api.json('POST', `/v1/deliveries/${segment(id)}/${action}`)) as Delivery;
      this.#list?.replace(changed);
      this.#say(id, action === 'retry' ? 'It will be sent again.' : 'It will not be sent.');
    } catch (error) {
      this.#say(id, explain(action === 'retry' ? 'Not sent again' : 'Not cancelled', error));
    }
  }

  #say(id: string, text: string): void {
    this.answers = new Map([...this.answers, [id, text]]);
  }

  #choose(state: State | null): void {
    [this.state, this.asked, this.ledger] = [state, null, false];
    void this.#list?.reload();
  }

  #nearEnd(): void {
    const { loading = true, cursor = null, problem = null } = this.#list?.state.get() ?? {};
    if (!loading && cursor !== null && problem === null) void this.#list?.more();
  }

  /** Without a filter: the dead letters, then all others. */
  async #load(cursor: string | null): Promise<Page<Delivery>> {
    const { api } = this.workspace;
    if (this.state !== null) return api.list('/v1/deliveries', { state: this.state, limit: PAGE, cursor });
    if (cursor?.startsWith(REST)) {
      const { items, next_cursor: next } = await api.list<Delivery>('/v1/deliveries', { limit: PAGE, cursor: cursor.slice(REST.length) || null });
      return { items: items.filter(({ state }) => state !== 'failed'), next_cursor: next === null ? null : REST + next };
    }
    const { items, next_cursor: next } = await api.list<Delivery>('/v1/deliveries', { state: 'failed', limit: PAGE, cursor });
    if (next !== null || cursor !== null) return { items, next_cursor: next ?? REST };
    const rest = await this.#load(REST);
    return { items: [...items, ...rest.items], next_cursor: rest.next_cursor };
  }
}
