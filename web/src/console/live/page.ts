import { type TemplateResult, html, nothing } from 'lit';
import { exactTime, plural } from '../format.ts';
import { type RowList, type RowsElement, START } from '../list/rows.ts';
import { PageElement } from '../page.ts';
import { to } from '../routes.ts';
import { severityMark } from '../severity.ts';
import type { Trace } from '../wire.ts';
import { LiveFeed } from './feed.ts';
import type { Group } from './outcome.ts';
import { type LiveFilter, type LiveRow, filtered, pause, resume } from './store.ts';

const GROUPS: readonly (readonly [Group | null, string])[] = [[null, 'All'], ['told', 'Told'], ['held', 'Held'], ['not', 'Not told']];
/** How often the rate is shown anew, in milliseconds. */
const RATE_MS = 1000;

/** Every event as it arrives, and what became of it. */
export class LivePage extends PageElement {
  static override properties = { ...PageElement.properties, filter: { state: true } };

  declare filter: LiveFilter;

  #feed: LiveFeed | null = null;

  constructor() {
    super();
    this.filter = { text: '', group: null };
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const feed = new LiveFeed(this.workspace);
    this.#feed = feed;
    this.watch(feed.live, feed.status, feed.problem);
    const rate = setInterval(() => { this.requestUpdate(); }, RATE_MS);
    this.onLeave(() => {
      clearInterval(rate);
      feed.close();
    });
  }

  protected override render(): TemplateResult {
    const feed = this.#feed;
    if (feed === null) return html``;
    const live = feed.live.get();
    const rows = filtered(live.rows, this.filter);
    const selected = this.route.id;
    return html`<h1>Live</h1><p class="sub">Every event as it arrives, and what became of it.</p>
      ${this.#bar(feed)}
      ${this.#notes(feed)}
      <div class=${selected === null ? 'split alone' : 'split'}>
        <div class="card fill live-table" role="table" aria-label="Events" aria-rowcount=${rows.length}>
          <div role="rowgroup"><div class="live-head" role="row">${['Time', 'Event', 'Source', 'Conversation', 'Outcome'].map((name) =>
            html`<span role="columnheader">${name}</span>`)}</div></div>
          ${live.paused && live.waitingCount > 0 ? html`<div role="row"><span role="cell"><button class="new" @click=${() => { this.#resume(); }}>${live.waitingCount} new, resume</button></span></div>` : nothing}
          ${rows.length === 0 ? html`<div role="row"><div role="cell" class="empty">${this.#empty(live.rows.length)}</div></div>` : html`<bellwire-rows .list=${this.#list(rows)} .estimate=${35} .rowRole=${'rowgroup'}
            label="Events" @scroll=${this.#scrolled}></bellwire-rows>`}
        </div>
        ${selected === null ? nothing : html`<bellwire-trace .workspace=${this.workspace} .route=${this.route} .event=${selected}
          @traced=${(event: CustomEvent<Trace>) => { feed.traced(event.detail); }} .version=${live.rows.find(({ event }) => event.id === selected)?.outcome ?? null}></bellwire-trace>`}
      </div>`;
  }

  #bar(feed: LiveFeed): TemplateResult {
    const { filter } = this;
    const { skipped, paused } = feed.live.get();
    const status = feed.status.get();
    const words = status !== 'live' ? 'Reconnecting…' : paused ? 'paused' : `${String(feed.rate())} events/s`;
    return html`<div class="bar">
      <input type="search" aria-label="Filter" placeholder="Filter: type, source, conversation, event id…" .value=${filter.text}
        @input=${(event: Event) => { this.filter = { ...filter, text: (event.target as HTMLInputElement).value }; }}>
      <div class="chips" role="group" aria-label="Outcome">${GROUPS.map(([group, name]) => html`<button aria-pressed=${filter.group === group ? 'true' : 'false'}
        @click=${() => { this.filter = { ...filter, group }; }}>${name}</button>`)}</div>
      <span class="end rate muted small"><span class=${`dot ${status}`}></span>${words}${skipped === 0 ? nothing : html` · ${plural(skipped, 'entry', 'entries')} skipped`}</span></div>`;
  }

  #notes(feed: LiveFeed): TemplateResult {
    const [problem, { gap }] = [feed.problem.get(), feed.live.get()];
    return html`${problem === null ? nothing : html`<p class="problem" role="alert">${problem} <button class="link" @click=${() => feed.load()}>Retry</button></p>`}
      ${gap === null ? nothing : html`<p class="gap muted small" role="status">Too many events came while the connection was lost:
        those between ${exactTime(gap.from)} and ${exactTime(gap.to)} are not shown.</p>`}`;
  }

  #empty(all: number): TemplateResult {
    if (all > 0) return html`No event has these words and this outcome.`;
    return html`No event yet. Publish one from the <a href="/playground">playground</a>, or with<br>
      <code>bellwire emit tool.call.failure '{"tool_name": "build"}' --user me -c chat --severity error</code>`;
  }

  #list(rows: readonly LiveRow[]): RowList<LiveRow> {
    return { items: rows, key: ({ event }) => event.id, row: (row) => this.#row(row) };
  }

  #row({ event, outcome }: LiveRow): TemplateResult {
    const current = event.id === this.route.id;
    const [time, milliseconds] = exactTime(event.accepted_at).split('.');
    return html`<div class=${`live-row ${current ? 'selected' : ''}`} role="row" data-key=${event.id} @click=${() => { void this.#choose(event.id); }}>
      <span role="cell" class="time muted">${time}<span class="ms">.${milliseconds}</span></span>
      <span role="cell" class="type">${severityMark(event.severity)}<button class="plain" aria-expanded=${current ? 'true' : 'false'}>${event.type}</button></span>
      <span role="cell" class="source muted"><bdi>${event.source}</bdi></span>
      <span role="cell" class="conversation"><bdi>${event.conversation_id ?? event.user_id}</bdi></span>
      <span role="cell"><span class=${`v ${outcome.look}`} title=${outcome.text}><span>${outcome.text}</span></span></span></div>`;
  }

  /** Shows the trace, which may take the place of the row where the page is narrow. */
  async #choose(id: string): Promise<void> {
    this.go(to('live', id));
    await new Promise(requestAnimationFrame);
    await this.querySelector<RowsElement>('bellwire-rows')?.reveal(id);
  }

  /** Scrolling down pauses, so that rows stay where they are read. */
  #scrolled(event: Event): void {
    const { scrollTop } = event.target as HTMLElement;
    this.#feed?.live.update((live) => (scrollTop > START ? pause(live) : resume(live)));
  }

  #resume(): void {
    this.#feed?.live.update(resume);
    const rows = this.querySelector<RowsElement>('bellwire-rows');
    if (rows !== null) rows.scrollTop = 0;
  }
}
