import { type TemplateResult, html, nothing } from 'lit';
import { TYPES, type Notification } from '../../notification.ts';
import type { Filter, Inbox } from '../../store/inbox.ts';
import { english } from '../../strings.ts';
import { consoleIcon } from '../icons.ts';
import type { RowList, RowsElement } from '../list/rows.ts';
import { PageElement, isTyping } from '../page.ts';
import { keysHelp } from './keys.ts';
import { inboxRow } from './row.ts';
import { type Step, Steps, describeStep } from './undo.ts';
import { InboxView } from './view.ts';

const STATES = ['unread', 'all', 'dismissed'] as const;
/** How often the times are written anew, in milliseconds. */
const TIMES_MS = 30_000;
/** How many finds a search shows before the person scrolls. */
const FOUND = 20;
/** How long a person may pause while typing a search, in milliseconds. */
const PAUSE_MS = 250;

/** The person's notifications. */
export class InboxPage extends PageElement {
  static override properties = { ...PageElement.properties, current: { state: true }, openId: { state: true } };

  /** The row that the keys act on. */
  declare current: string | null;
  declare openId: string | null;

  readonly #steps = new Steps();
  readonly #view = new InboxView();
  #searching: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    this.current = null;
    this.openId = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const { bellwire } = this.workspace;
    this.watch(bellwire.inbox, bellwire.requests);
    const times = setInterval(() => { this.requestUpdate(); }, TIMES_MS);
    const keyed = (event: KeyboardEvent): void => { this.#key(event); };
    document.addEventListener('keydown', keyed);
    this.onLeave(() => {
      clearInterval(times);
      clearTimeout(this.#searching);
      document.removeEventListener('keydown', keyed);
    });
    void bellwire.more();
  }

  protected override render(): TemplateResult {
    const { bellwire, isReadOnly, person } = this.workspace;
    const inbox = bellwire.inbox.get();
    const items = this.#view.of(inbox);
    return html`
      <div class="head"><h1>Inbox</h1>
        ${isReadOnly ? html`<span class="v"><span>${person}, read only</span></span>` : nothing}
        ${isReadOnly || inbox.unread === 0 ? nothing : html`<button class="read-all" @click=${() => bellwire.readAll()}>Mark all as read</button>`}
        <button class="icon keys" aria-label="Keys" title="Keys (?)" popovertarget="keys">${consoleIcon('keys', 18)}</button></div>
      ${this.#filters(inbox.filter)}
      ${this.#notes(inbox)}
      <div class="card fill">${items.length === 0 ? this.#empty(inbox) : html`<bellwire-rows .list=${this.#list(items)} .estimate=${84}
        label="Notifications" @near-end=${() => { this.#more(inbox); }}></bellwire-rows>`}</div>
      ${keysHelp()}`;
  }

  /** A search goes on through older pages until it has something to show. */
  protected override updated(): void {
    const inbox = this.workspace.bellwire.inbox.get();
    if ((inbox.filter.search ?? '') !== '' && inbox.floor !== null && this.#view.of(inbox).length < FOUND) this.#more(inbox);
  }

  #filters(filter: Filter): TemplateResult {
    const { bellwire } = this.workspace;
    const type = (event: Event): void => {
      const { value } = event.target as HTMLSelectElement;
      bellwire.choose({ ...filter, type: TYPES.find((one) => one === value) ?? null });
    };
    return html`<div class="bar"><div class="chips" role="group" aria-label="Show">
        ${STATES.map((state) => html`<button aria-pressed=${filter.state === state ? 'true' : 'false'}
          @click=${() => { bellwire.choose({ ...filter, state }); }}>${english.filterState[state]}</button>`)}</div>
      <label><span class="hidden">Type</span><select @change=${type}>
        <option value="" ?selected=${filter.type === null}>All types</option>
        ${TYPES.map((one) => html`<option value=${one} ?selected=${filter.type === one}>${english.severity[one]}</option>`)}
      </select></label>
      <input type="search" aria-label="Search" placeholder="Search (/)" maxlength="100" .value=${filter.search ?? ''} @input=${this.#search}></div>`;
  }

  #notes(inbox: Inbox): TemplateResult {
    const { bellwire } = this.workspace;
    const step = this.#steps.last;
    const undo = step === null ? nothing : html`<span class="done">${describeStep(step)}</span>
      <button class="link undo" @click=${() => this.#undo()}>Undo (u)</button>`;
    return html`<p class="undo-line small muted" role="status">${undo}</p>
      ${inbox.problem === null ? nothing : html`<p class="problem" role="alert">${english.listProblem(inbox.problem)}
        <button class="link" @click=${() => bellwire.more()}>Retry</button></p>`}`;
  }

  #empty(inbox: Inbox): TemplateResult {
    if (inbox.loading || inbox.floor === null || (inbox.cursor !== null && inbox.problem === null)) return html`<p class="empty" role="status">${inbox.problem === null ? 'Loading…' : nothing}</p>`;
    if ((inbox.filter.search ?? '') !== '') return html`<p class="empty">Nothing has this text. Search also under «All» and «Dismissed».</p>`;
    if (inbox.filter.type !== null) return html`<p class="empty">Nothing of this type.</p>`;
    return html`<p class="empty">${english.empty[inbox.filter.state]}</p>`;
  }

  #list(items: readonly Notification[]): RowList<Notification> {
    const { bellwire, isReadOnly } = this.workspace;
    const [now, requests] = [Date.now(), bellwire.requests.get()];
    const current = items.some(({ id }) => id === this.current) ? this.current : (items[0]?.id ?? null);
    const row = (item: Notification, index: number): TemplateResult => inboxRow({
      item, bellwire, strings: english, request: requests.get(item.id) ?? null, now, isReadOnly,
      isCurrent: item.id === current, isChosen: item.id === this.current, isOpen: item.id === this.openId,
      choose: () => { this.current = item.id; },
      open: () => { this.#open(item); },
      toggleRead: () => { this.#toggleRead(item); },
      dismiss: () => { this.#dismiss(item); },
      restore: () => { void bellwire.restore(item.id); },
    }, index, items.length);
    return { items, key: ({ id }) => id, row };
  }

  #more(inbox: Inbox): void {
    if (inbox.cursor !== null && !inbox.loading && inbox.problem === null && inbox.items.size < inbox.itemsMax) void this.workspace.bellwire.more();
  }

  #search(event: Event): void {
    const { value } = event.target as HTMLInputElement;
    clearTimeout(this.#searching);
    this.#searching = setTimeout(() => {
      const { bellwire } = this.workspace;
      bellwire.choose({ ...bellwire.inbox.get().filter, search: value.trim() });
    }, PAUSE_MS);
  }

  #key(event: KeyboardEvent): void {
    if (isTyping(event)) return;
    const item = this.#currentItem();
    const onControl = event.composedPath()[0] instanceof HTMLElement && (event.composedPath()[0] as HTMLElement).matches('button, a, summary');
    const actions: Record<string, () => void> = {
      j: () => { this.#move(1); },
      k: () => { this.#move(-1); },
      Enter: () => { if (item && !onControl) this.#open(item); },
      e: () => { if (item) this.#dismiss(item); },
      r: () => { if (item) this.#toggleRead(item); },
      u: () => { void this.#undo(); },
      '/': () => { this.querySelector<HTMLElement>('input[type=search]')?.focus(); },
      '?': () => { this.querySelector<HTMLElement>('#keys')?.togglePopover(); },
    };
    const action = actions[event.key];
    if (action === undefined || (event.key === 'Enter' && onControl)) return;
    event.preventDefault();
    action();
  }

  #items(): readonly Notification[] {
    return this.#view.of(this.workspace.bellwire.inbox.get());
  }

  #currentItem(): Notification | null {
    const items = this.#items();
    return items.find(({ id }) => id === this.current) ?? items[0] ?? null;
  }

  /** Moves to another row. The first press of a key goes to the first one. */
  #move(by: number): void {
    const items = this.#items();
    const at = items.findIndex(({ id }) => id === this.current);
    const next = items[at < 0 ? 0 : Math.min(items.length - 1, Math.max(0, at + by))];
    if (next) void this.#focus(next.id);
  }

  async #focus(id: string): Promise<void> {
    this.current = id;
    await this.updateComplete;
    const row = await this.querySelector<RowsElement>('bellwire-rows')?.reveal(id);
    row?.focus();
  }

  #open(item: Notification): void {
    this.openId = this.openId === item.id ? null : item.id;
    this.current = item.id;
    if (this.openId !== null && item.read_at === null && !this.workspace.isReadOnly) this.#read(item, true);
  }

  #toggleRead(item: Notification): void {
    if (this.workspace.isReadOnly || item.dismissed_at !== null) return;
    this.#read(item, item.read_at === null);
    this.#steps.add({ action: item.read_at === null ? 'read' : 'unread', id: item.id, text: item.title ?? item.message });
  }

  #read(item: Notification, read: boolean): void {
    this.#view.keep(item.id);
    void this.workspace.bellwire.read(item.id, read);
  }

  #dismiss(item: Notification): void {
    if (this.workspace.isReadOnly || item.dismissed_at !== null) return;
    const items = this.#items();
    const at = items.findIndex(({ id }) => id === item.id);
    const next = items[at + 1] ?? items[at - 1];
    this.#steps.add({ action: 'dismiss', id: item.id, text: item.title ?? item.message });
    void this.workspace.bellwire.dismiss(item.id);
    if (next) void this.#focus(next.id);
  }

  async #undo(): Promise<void> {
    const step: Step | null = this.#steps.take();
    if (step === null) return;
    const { bellwire } = this.workspace;
    this.requestUpdate();
    if (step.action === 'dismiss') await bellwire.restore(step.id);
    else await bellwire.read(step.id, step.action === 'unread');
    if (this.#items().some(({ id }) => id === step.id)) await this.#focus(step.id);
  }
}
