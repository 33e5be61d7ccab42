import { type TemplateResult, html, nothing } from 'lit';
import { explain } from '../api.ts';
import { count, shortTime } from '../format.ts';
import { PagedList } from '../list/paged.ts';
import { PageElement } from '../page.ts';
import type { LedgerEntry, LedgerSums } from '../wire.ts';

const DECISIONS = ['delivered', 'deferred', 'refused', 'failed', 'unknown'] as const;
const LOOKS: Readonly<Record<LedgerEntry['decision'], string>> = { delivered: 'good', deferred: 'waits', refused: 'held', failed: 'bad', unknown: 'held' };

/** What became of the calls of `notify`: sums by origin, and the decisions of one. */
export class LedgerElement extends PageElement {
  static override properties = { ...PageElement.properties, sums: { state: true }, problem: { state: true }, origin: { state: true } };

  declare sums: readonly LedgerSums[] | null;
  declare problem: string | null;
  declare origin: string | null;

  #entries: PagedList<LedgerEntry> | null = null;

  constructor() {
    super();
    [this.sums, this.problem, this.origin] = [null, null, null];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const { api } = this.workspace;
    this.#entries = new PagedList<LedgerEntry>((cursor) => api.list('/v1/ledger', { origin: this.origin, limit: 50, cursor }), ({ id }) => id);
    this.watch(this.#entries.state);
    void this.#load();
  }

  protected override render(): TemplateResult {
    const { sums } = this;
    return html`${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem} <button class="link" @click=${() => this.#load()}>Retry</button></p>`}
      ${sums?.length === 0 ? html`<p class="empty">No agent has called notify yet. Each call leaves a line here: what was decided, and why.</p>` : nothing}
      ${sums === null || sums.length === 0 ? nothing : html`<div class="card scroll-x" tabindex="0" role="region" aria-label="Sums by origin"><table>
        <thead><tr><th scope="col">Origin</th>${DECISIONS.map((decision) => html`<th scope="col">${decision}</th>`)}<th scope="col"><span class="hidden">Decisions</span></th></tr></thead>
        <tbody>${sums.map((one) => this.#row(one))}</tbody></table></div>`}
      ${this.origin === null ? nothing : this.#decisions(this.origin)}`;
  }

  #row(one: LedgerSums): TemplateResult {
    return html`<tr><th scope="row"><bdi>${one.origin}</bdi>${one.never_gets_through ? html` <span class="v bad"><span>never gets through</span></span>` : nothing}</th>
      ${DECISIONS.map((decision) => html`<td>${count(one[decision])}</td>`)}
      <td><button class="link" @click=${() => { this.#choose(one.origin); }}>Decisions<span class="hidden"> of ${one.origin}</span></button></td></tr>`;
  }

  #decisions(origin: string): TemplateResult {
    const { items, cursor, problem } = this.#entries?.state.get() ?? { items: [], cursor: null, problem: null };
    return html`<h2 class="part">Decisions of <bdi>${origin}</bdi></h2>${problem === null ? nothing : html`<p class="problem" role="alert">${problem}</p>`}
      <div class="card scroll-x" tabindex="0" role="region" aria-label=${`Decisions of ${origin}`}><table>
        <thead><tr>${['When', 'Decision', 'Channel', 'Intent', 'Person', 'Reason'].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${items.map(({ at, decision, channel, intent, user_id: user, reason }) => html`<tr><td>${shortTime(at)}</td><td><span class=${`v ${LOOKS[decision]}`}><span>${decision}</span></span></td>
          <td>${channel ?? '–'}</td><td>${intent ?? '–'}</td><td><bdi>${user ?? '–'}</bdi></td><td dir="auto">${reason ?? ''}</td></tr>`)}</tbody></table></div>
      ${cursor === null ? nothing : html`<p><button @click=${() => this.#entries?.more()}>Load more</button></p>`}`;
  }

  #choose(origin: string): void {
    this.origin = origin;
    void this.#entries?.reload();
  }

  async #load(): Promise<void> {
    try {
      const { items } = await this.workspace.api.list<LedgerSums>('/v1/ledger/sums');
      [this.sums, this.problem] = [items, null];
    } catch (error) {
      this.problem = explain('The ledger could not be loaded', error);
    }
  }
}
