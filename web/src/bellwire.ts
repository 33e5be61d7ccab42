// One person's notifications in a page: the state, what changes it, and what the person can do with them.
import type { Access } from './client/access.ts';
import { type Change, Person } from './client/person.ts';
import { type Notification, type Position, isPersistent, isSettled } from './notification.ts';
import { type Problem, canRetry, problemOf } from './problem.ts';
import { EMPTY_INBOX, ITEMS_MAX, type Filter, type Inbox, addPage, choose, put } from './store/inbox.ts';
import { OncePerFrame } from './store/frames.ts';
import { Observable, type Readable } from './store/observable.ts';
import { type Request, Requests } from './store/requests.ts';
import { ShownIds } from './store/shown.ts';
import { ToastTimers } from './store/toast-timers.ts';
import * as deck from './store/toasts.ts';

/** How many items a page of the list has unless a page asks for more. */
const PAGE = 20;
/** How many unread items are read at the start, to find the toasts that are still due. */
const START_PAGE = 100;
/** How many toasts that are still due are shown at the start. */
const DUE_MAX = 20;

export interface PromptContext {
  readonly notification: Notification;
  readonly label: string;
  /** Whether the hub has already sent the prompt to the agent. If not, the page must. */
  readonly delivered: boolean;
}

export type PromptHandler = (prompt: string, context: PromptContext) => void | Promise<void>;

export interface BellwireOptions extends Access {
  /** Whose notifications these are. Without it the page has no hub and shows only what it finds itself. */
  readonly user?: string;
  /** Called when the person presses a `prompt` button. */
  readonly onPrompt?: PromptHandler | undefined;
  /** Whether the tabs of this origin share one stream: all of a person, or those with the same text. Default: all. */
  readonly shareTabs?: boolean | string;
  /** How many items of the inbox are kept in memory. Default: 1000. */
  readonly itemsMax?: number;
  /** How many items are loaded at once, at most 100. Default: 20. */
  readonly pageSize?: number;
}

/** Called with each new notification of the hub. `leads`: this tab reads the stream for all tabs. */
export type ArrivalListener = (item: Notification, leads: boolean) => void;

export class Bellwire {
  readonly #inbox = new Observable<Inbox>(EMPTY_INBOX);
  readonly #toasts = new ToastTimers((id) => { this.#person?.hidden(id); });
  readonly #requests = new Requests();
  readonly #handler: Observable<PromptHandler | null>;
  readonly #person: Person | null;
  readonly #shown: ShownIds;
  readonly #pageSize: number;
  readonly #arrivals = new Set<ArrivalListener>();
  /** The toasts that arrive before it is known what the person has muted or switched off; null = it is known. */
  #early: Notification[] | null = null;
  /** The items that changed since the page that is being loaded was asked for. */
  #changed = new Set<string>();
  /** What the stream said since the last frame: every change of a large inbox costs as much as many. */
  readonly #arrived = new Map<string, Notification>();
  #unread: number | null = null;
  readonly #frames = new OncePerFrame(() => { this.#takeArrived(); });

  constructor(options: BellwireOptions = {}) {
    const { user, onPrompt, shareTabs = true, itemsMax = ITEMS_MAX, pageSize = PAGE, ...access } = options;
    this.#pageSize = pageSize;
    this.#inbox.update((inbox) => ({ ...inbox, itemsMax }));
    this.#handler = new Observable<PromptHandler | null>(onPrompt ?? null);
    this.#shown = new ShownIds(user === undefined ? 'bellwire:shown' : null);
    this.#person = user === undefined ? null : new Person(user, access, shareTabs, {
      change: (change) => { this.#apply(change); },
      fresh: () => { void this.#start(); },
      status: (connection) => { this.#inbox.update((inbox) => ({ ...inbox, connection })); },
      hide: (id) => { this.#hide(id); },
    });
  }

  /** Whether the notifications come from a hub. */
  get hasHub(): boolean {
    return this.#person !== null;
  }

  get inbox(): Readable<Inbox> {
    return this.#inbox;
  }

  get toasts(): Readable<deck.Deck> {
    return this.#toasts.deck;
  }

  get requests(): Readable<ReadonlyMap<string, Request>> {
    return this.#requests.all;
  }

  get handler(): Readable<PromptHandler | null> {
    return this.#handler;
  }

  get onPrompt(): PromptHandler | null {
    return this.#handler.get();
  }

  set onPrompt(handler: PromptHandler | null) {
    this.#handler.set(handler);
  }

  /** Ends the connection and the timers. */
  close(): void {
    this.#toasts.close();
    this.#person?.close();
    this.#frames.cancel();
  }

  /** Shows a toast of the page. Returns false if its id was shown before. */
  show(item: Notification): boolean {
    if (this.#shown.has(item.id)) return false;
    // A persistent one is there again after a reload, until the person has dealt with it.
    if (!isPersistent(item) || item.from === 'hub') this.#shown.add(item.id);
    if (deck.find(this.#toasts.deck.get(), item.id)) return false;
    this.#toasts.move((state, now) => deck.add(state, item, now));
    return true;
  }

  /** Why a button cannot be pressed; null = it can. */
  blocked(item: Notification, index: number): 'no_handler' | null {
    const needsHandler = item.actions[index]?.action === 'prompt' && !this.#answersThroughHub(item);
    return needsHandler && this.onPrompt === null ? 'no_handler' : null;
  }

  /** Presses a button. */
  async press(id: string, index: number): Promise<void> {
    const item = this.#find(id);
    const action = item?.actions[index];
    if (!item || !action || this.blocked(item, index) !== null || this.#requests.of(id)?.state === 'sending') return;
    if (action.action === 'dismiss') return this.dismiss(id, index);
    this.#toasts.move((state, now) => deck.busy(state, id, now));
    await this.#request(id, 'press', index, async () => {
      await this.#answer(item, index, action.prompt ?? '', action.label);
      this.#toasts.move((state, now) => deck.done(state, id, now));
    });
  }

  /** Dismisses a notification everywhere, by its × or by a button. */
  async dismiss(id: string, index: number | null = null): Promise<void> {
    const item = this.#find(id);
    if (!item) return;
    this.#toasts.move((state, now) => deck.leave(state, id, now));
    if (item.from === 'page') {
      this.#shown.add(id);
      return;
    }
    await this.#request(id, 'dismiss', index, async () => {
      const dismissed = await (index === null ? this.#person?.dismiss(id) : this.#person?.press(id, index));
      if (dismissed) this.#put(dismissed);
    });
  }

  async read(id: string, read: boolean): Promise<void> {
    await this.#request(id, read ? 'read' : 'unread', null, async () => {
      const item = await this.#person?.read(id, read);
      if (item) this.#put(item);
    });
  }

  /** Takes back a dismissal. */
  async restore(id: string): Promise<void> {
    await this.#request(id, 'restore', null, async () => {
      const item = await this.#person?.restore(id);
      if (item) this.#put(item);
    });
  }

  /** Calls the listener with each notification that arrives. Returns the function that ends it. */
  arrived(listener: ArrivalListener): () => void {
    this.#arrivals.add(listener);
    return () => this.#arrivals.delete(listener);
  }

  /** Repeats the request that failed. */
  async retry(id: string): Promise<void> {
    const request = this.#requests.of(id);
    if (request?.state !== 'failed') return;
    switch (request.action) {
      case 'press':
        return this.press(id, request.index ?? 0);
      case 'dismiss':
        return this.dismiss(id, request.index);
      case 'read':
      case 'unread':
        return this.read(id, request.action === 'read');
      case 'restore':
        return this.restore(id);
    }
  }

  async readAll(): Promise<void> {
    await this.#person?.readAll().catch((error: unknown) => { this.#listProblem(error); });
  }

  /** Shows another part of the inbox. */
  choose(filter: Filter): void {
    this.#inbox.update((inbox) => choose(inbox, filter));
    void this.more();
  }

  /** Loads the next page of the list, or the first one. */
  async more(): Promise<void> {
    const { loading, floor, cursor, filter } = this.#inbox.get();
    if (loading || (floor !== null && cursor === null)) return;
    await this.#load(filter, cursor, this.#pageSize);
  }

  /** The pointer or the focus entered a position, or left it. */
  hold(position: Position, held: boolean): void {
    this.#toasts.move((state, now) => deck.hold(state, position, held, now));
  }

  async #load(filter: Filter, cursor: string | null, limit: number): Promise<readonly Notification[]> {
    this.#inbox.update((inbox) => ({ ...inbox, loading: true, problem: null }));
    this.#changed = new Set();
    try {
      const page = await this.#person?.list(filter, cursor, limit);
      this.#frames.flush();
      const stale = filter !== this.#inbox.get().filter;
      if (page && !stale) this.#inbox.update((inbox) => addPage(inbox, page.items, page.cursor, this.#changed));
      if (stale) {
        this.#inbox.update((inbox) => ({ ...inbox, loading: false }));
        await this.more();
      }
      return page?.items.filter((item) => !this.#changed.has(item.id)) ?? [];
    } catch (error) {
      this.#listProblem(error);
      return [];
    }
  }

  #listProblem(error: unknown): void {
    this.#inbox.update((inbox) => ({ ...inbox, loading: false, problem: problemOf(error) }));
  }

  /** Loads the unread items, and shows the toasts among them that wait for the person. */
  async #start(): Promise<void> {
    this.#early ??= [];
    const [items, settings] = await Promise.all([this.#loadUnread(), this.#person?.settings().catch(() => null)]);
    const early = this.#takeEarly();
    if (settings?.toasts.enabled === false) return;
    const muted = settings?.muted_origins ?? [];
    const persistent = items.filter((item) => item.kind === 'toast' && isPersistent(item) && !early.some(({ id }) => id === item.id));
    const due = [...early.reverse(), ...persistent].filter((item) => !isSettled(this.#known(item.id) ?? item));
    const allowed = due.filter(({ origin }) => origin === null || !muted.includes(origin));
    for (const item of allowed.slice(0, DUE_MAX).reverse()) this.show(item);
  }

  #takeEarly(): Notification[] {
    const early = this.#early ?? [];
    this.#early = null;
    return early;
  }

  /** The newest unread items. They are also the first page of the inbox, unless the person chose another view. */
  async #loadUnread(): Promise<readonly Notification[]> {
    const { filter } = this.#inbox.get();
    if (filter.state === 'unread' && filter.type === null && (filter.search ?? '') === '') return this.#load(filter, null, START_PAGE);
    this.choose(filter);
    const page = await this.#person?.list({ state: 'unread', type: null }, null, START_PAGE).catch(() => null);
    return page?.items ?? [];
  }

  #apply(change: Change): void {
    this.#frames.request();
    if (change.kind === 'unread') {
      this.#unread = change.count;
      return;
    }
    this.#arrived.set(change.item.id, change.item);
    this.#settle(change.item);
    if (change.kind === 'toast' && this.#early === null) this.show(change.item);
    else if (change.kind === 'toast') this.#early?.push(change.item);
    if (change.kind !== 'updated') for (const listener of this.#arrivals) listener(change.item, this.#person?.leads ?? false);
  }

  /** Adds what the stream said to the inbox. */
  #takeArrived(): void {
    const [items, unread] = [[...this.#arrived.values()], this.#unread];
    this.#arrived.clear();
    this.#unread = null;
    this.#inbox.update((inbox) => ({ ...(items.length === 0 ? inbox : put(inbox, items)), unread: unread ?? inbox.unread }));
  }

  /** Takes over an item as the hub answered it. */
  #put(item: Notification): void {
    this.#arrived.delete(item.id);
    this.#inbox.update((inbox) => put(inbox, [item]));
    this.#settle(item);
  }

  /** An item that is settled needs no toast. */
  #settle(item: Notification): void {
    this.#changed.add(item.id);
    if (!isSettled(item)) return;
    const request = this.#requests.of(item.id);
    // The toast of a button that was pressed here says how that went before it goes.
    if (request?.action === 'press' && (request.problem === null || !canRetry(request.problem))) return;
    this.#requests.forget(item.id, 'failed');
    this.#toasts.move((state, now) => deck.leave(state, item.id, now));
  }

  #find(id: string): Notification | null {
    return deck.find(this.#toasts.deck.get(), id)?.item ?? this.#known(id);
  }

  #known(id: string): Notification | null {
    return this.#arrived.get(id) ?? this.#inbox.get().items.get(id) ?? null;
  }

  #answersThroughHub(item: Notification): boolean {
    return item.from === 'hub' && item.conversation_id !== null;
  }

  /** Sends a prompt: through the hub where it has a conversation, else by the page. */
  async #answer(item: Notification, index: number, prompt: string, label: string): Promise<void> {
    const delivered = this.#answersThroughHub(item);
    if (delivered) await this.#person?.press(item.id, index);
    const told = Promise.resolve(this.onPrompt?.(prompt, { notification: item, label, delivered }));
    // The agent has it: what the page does with it changes nothing about that.
    if (delivered) return void told.catch(() => undefined);
    await told;
    if (item.from === 'hub') await this.#person?.dismiss(item.id);
    else this.#shown.add(item.id);
  }

  /** Carries out a request and keeps how it went. A toast whose request failed is there again. */
  async #request(id: string, action: Request['action'], index: number | null, work: () => Promise<void>): Promise<void> {
    const item = this.#find(id);
    const toast = deck.find(this.#toasts.deck.get(), id) !== null;
    this.#requests.remember(id, { action, index, state: 'sending', problem: null });
    try {
      await work();
      this.#requests.remember(id, { action, index, state: 'sent', problem: null });
      setTimeout(() => { this.#requests.forget(id, 'sent'); }, deck.SENT_MS + deck.FADE_MS);
    } catch (error) {
      const problem = problemOf(error);
      this.#requests.remember(id, { action, index, state: 'failed', problem });
      if (!item || !toast) return;
      this.#toasts.move((state, now) => failed(state, item, problem, now));
    }
  }

  /** Another tab has shown the toast for its time. */
  #hide(id: string): void {
    if (deck.find(this.#toasts.deck.get(), id)?.phase === 'open') this.#toasts.move((state, now) => deck.leave(state, id, now));
  }
}

/** A toast whose request failed stays, or comes back; one that was settled elsewhere says so and goes. */
function failed(state: deck.Deck, item: Notification, problem: Problem, now: number): deck.Deck {
  const there = deck.busy(deck.add(state, item, now), item.id, now);
  return canRetry(problem) ? there : deck.done(there, item.id, now);
}
