import { LitElement, type TemplateResult, html, nothing } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { Bellwire } from '../bellwire.ts';
import type { NotificationType } from '../notification.ts';
import { page } from '../page.ts';
import { type Filter, type Inbox, view } from '../store/inbox.ts';
import { type Strings, withStrings } from '../strings.ts';
import { icon } from './icons.ts';
import { inboxItem } from './inbox-item.ts';
import { inboxStyles } from './inbox-styles.ts';
import { theme } from './theme.ts';

const STATES = ['unread', 'all', 'dismissed'] as const;
const TYPES: readonly NotificationType[] = ['info', 'success', 'warning', 'error', 'reminder'];
/** How often the times of the list are written anew, in milliseconds. */
const TIMES_MS = 30_000;
/** The distance between the bell and its panel, and between the panel and the edge of the page, in pixels. */
const GAP = 8;
const MARGIN = 12;

/** A bell with the number of unread notifications. It opens the inbox. */
export class InboxElement extends LitElement {
  static override styles = [theme, inboxStyles];
  static override properties = {
    bellwire: { attribute: false },
    strings: { attribute: false },
    theme: { reflect: true },
    open: { state: true },
  };

  declare bellwire: Bellwire | null;
  declare strings: Partial<Strings> | null;
  declare theme: string | null;
  declare open: boolean;

  #unsubscribePage: () => void = () => undefined;
  #subscriptions: (() => void)[] = [];
  #watched: Bellwire | null = null;
  #times: ReturnType<typeof setInterval> | undefined;

  constructor() {
    super();
    this.bellwire = null;
    this.strings = null;
    this.theme = null;
    this.open = false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#unsubscribePage = page.subscribe(() => { this.requestUpdate(); });
    this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#unsubscribePage();
    this.#watch(null);
    clearInterval(this.#times);
  }

  protected override willUpdate(): void {
    if (this.isConnected) this.#watch(this.bellwire ?? page.peek());
    const connection = this.#watched?.hasHub ? this.#watched.inbox.get().connection : 'none';
    // For the style sheets of the page.
    if (this.dataset.connection !== connection) this.dataset.connection = connection;
  }

  protected override render(): TemplateResult {
    const strings = withStrings(this.strings);
    const unread = this.#watched?.inbox.get().unread ?? 0;
    const badge = unread === 0 ? nothing : html`<span class="badge" aria-hidden="true">${strings.badge(unread)}</span>`;
    return html`
      <button class="icon bell" aria-label=${strings.bell(unread)} aria-haspopup="dialog"
        aria-expanded=${this.open ? 'true' : 'false'} popovertarget="panel">${icon('bell', 20)}${badge}</button>
      <div id="panel" class="panel" popover="auto" role="dialog" aria-label=${strings.notifications}
        @beforetoggle=${this.#beforeToggle} @toggle=${this.#toggled}>
        ${this.open ? this.#panel(strings) : nothing}
      </div>`;
  }

  #panel(strings: Strings): TemplateResult {
    const bellwire = this.#watched;
    const inbox = bellwire?.inbox.get();
    const note = !bellwire?.hasHub ? strings.noHub : inbox?.connection === 'reconnecting' ? strings.reconnecting
      : inbox?.connection === 'ended' ? strings.signedOut : null;
    return html`
      <div class="head"><h2>${strings.notifications}</h2>
        <button class="read-all" @click=${() => bellwire?.readAll()}>${strings.markAllRead}</button>
        <button class="icon" aria-label=${strings.close} popovertarget="panel" popovertargetaction="hide">${
          icon('close')}</button></div>
      ${inbox ? this.#filters(strings, inbox.filter) : nothing}
      ${note === null ? nothing : html`<p class="note" role="status">${note}</p>`}
      ${inbox?.problem ? html`<p class="note" role="status">${strings.listProblem(inbox.problem)}
        <button class="link" @click=${() => bellwire?.more()}>${strings.retry}</button></p>` : nothing}
      ${bellwire && inbox ? this.#list(strings, bellwire, inbox) : nothing}`;
  }

  #filters(strings: Strings, filter: Filter): TemplateResult {
    const choose = (change: Partial<Filter>): void => { this.#watched?.choose({ ...filter, ...change }); };
    const type = (event: Event): void => {
      const { value } = event.target as HTMLSelectElement;
      choose({ type: TYPES.find((one) => one === value) ?? null });
    };
    return html`<div class="filters" role="group" aria-label=${strings.show}>
      ${STATES.map((state) => html`<button aria-pressed=${filter.state === state ? 'true' : 'false'}
        @click=${() => { choose({ state }); }}>${strings.filterState[state]}</button>`)}
      <label><span class="hidden">${strings.filterType}</span><select @change=${type}>
        <option value="" ?selected=${filter.type === null}>${strings.anyType}</option>
        ${TYPES.map((one) => html`<option value=${one} ?selected=${filter.type === one}>${strings.severity[one]}</option>`)}
      </select></label></div>`;
  }

  #list(strings: Strings, bellwire: Bellwire, inbox: Inbox): TemplateResult {
    const items = view(inbox);
    const [now, language] = [Date.now(), this.closest('[lang]')?.getAttribute('lang') ?? undefined];
    const row = (item: (typeof items)[number]): TemplateResult => html`<li>${inboxItem({
      item, bellwire, strings, now, language, request: bellwire.requests.get().get(item.id) ?? null,
    })}</li>`;
    if (items.length === 0 && inbox.loading) return html`<p class="empty" role="status">${strings.loading}</p>`;
    const empty = inbox.problem ? nothing : strings.empty[inbox.filter.state];
    if (items.length === 0 && inbox.cursor === null) return html`<p class="empty">${empty}</p>`;
    const more = html`<li class="foot"><button @click=${() => bellwire.more()}>${
      inbox.loading ? strings.loading : strings.loadMore}</button></li>`;
    return html`<ul class="list">${repeat(items, ({ id }) => id, row)}${inbox.cursor === null ? nothing : more}</ul>`;
  }

  #watch(bellwire: Bellwire | null): void {
    if (bellwire === this.#watched) return;
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    this.#watched = bellwire;
    const states = bellwire ? [bellwire.inbox, bellwire.requests, bellwire.handler] : [];
    this.#subscriptions = states.map((state) => state.subscribe(() => { this.requestUpdate(); }));
  }

  #beforeToggle(event: ToggleEvent): void {
    if (event.newState !== 'open') return;
    this.open = true;
    this.#place();
  }

  #toggled(event: ToggleEvent): void {
    this.open = event.newState === 'open';
    clearInterval(this.#times);
    if (!this.open) return;
    this.#times = setInterval(() => { this.requestUpdate(); }, TIMES_MS);
    void this.#watched?.more();
  }

  /** Below the bell, or above it where there is more room; inside of the page. */
  #place(): void {
    const panel = this.renderRoot.querySelector<HTMLElement>('.panel');
    const bell = this.renderRoot.querySelector('.bell')?.getBoundingClientRect();
    if (!panel || !bell) return;
    const [width, height] = [document.documentElement.clientWidth, document.documentElement.clientHeight];
    const below = height - bell.bottom >= bell.top;
    const room = (below ? height - bell.bottom : bell.top) - GAP - MARGIN;
    const right = Math.max(MARGIN, Math.min(width - bell.right, width - MARGIN - 400));
    panel.style.setProperty('max-height', `${String(Math.max(240, Math.min(600, room)))}px`);
    panel.style.setProperty('top', below ? `${String(bell.bottom + GAP)}px` : 'auto');
    panel.style.setProperty('bottom', below ? 'auto' : `${String(height - bell.top + GAP)}px`);
    panel.style.setProperty('right', width <= 480 ? `${String(MARGIN)}px` : `${String(right)}px`);
  }
}
