// The hub's calls about one person, and the person's stream.
import { type Notification, isRecord } from '../notification.ts';
import type { Filter } from '../store/inbox.ts';
import type { Access } from './access.ts';
import { HubError, HubHttp } from './http.ts';
import type { SseEvent } from './sse.ts';
import { type StreamStatus, follow } from './stream.ts';
import { type TabMessage, Tabs } from './tabs.ts';
import { type InboxQuery, type WireSettings, fromHub } from './wire.ts';

export interface Page {
  readonly items: readonly Notification[];
  readonly cursor: string | null;
}

/** What the stream says. */
export type Change =
  | { readonly kind: 'toast' | 'notification' | 'updated'; readonly item: Notification }
  | { readonly kind: 'unread'; readonly count: number };

export interface PersonEvents {
  change(change: Change): void;
  /** The changes begin now: load what was before. */
  fresh(): void;
  status(status: StreamStatus): void;
  /** Another tab has shown this toast for its time. */
  hide(id: string): void;
}

export class Person {
  readonly #http: HubHttp;
  readonly #base: string;
  readonly #events: PersonEvents;
  readonly #tabs: Tabs;
  #position: string | null = null;
  #status: StreamStatus = 'connecting';
  #leads = false;
  /** Whether another tab answered, so that this one gets every change from then on. */
  #listens = false;

  /** `shareTabs`: whether the tabs share one stream; a text: those with the same text. */
  constructor(user: string, access: Access, shareTabs: boolean | string, events: PersonEvents) {
    this.#http = new HubHttp(access);
    this.#base = `/v1/users/${encodeURIComponent(user)}`;
    this.#events = events;
    this.#tabs = new Tabs(shareTabs === false ? null : [access.url ?? '', user, shareTabs === true ? '' : shareTabs].join(' '), (message) => { this.#receive(message); });
    this.#tabs.tell({ kind: 'hello' });
    void this.#tabs.lead((stop) => this.#follow(stop));
  }

  close(): void {
    this.#tabs.close();
  }

  /** Whether this tab reads the stream. */
  get leads(): boolean {
    return this.#leads;
  }

  /** Tells the other tabs that a toast was shown for its time. */
  hidden(id: string): void {
    this.#tabs.tell({ kind: 'hide', id });
  }

  async list(filter: Filter, cursor: string | null, limit: number): Promise<Page> {
    const query: Record<keyof InboxQuery, string | null> = {
      state: filter.state, type: filter.type satisfies InboxQuery['type'] | null, limit: String(limit), cursor, search: filter.search === '' ? null : (filter.search ?? null),
    };
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== null) search.set(name, value);
    const body = await this.#http.json('GET', `${this.#base}/notifications?${search.toString()}`);
    if (!isRecord(body) || !Array.isArray(body.items)) throw new HubError(0, 'the answer is not a list');
    const items = body.items.map(fromHub).filter((item) => item !== null);
    return { items, cursor: typeof body.next_cursor === 'string' ? body.next_cursor : null };
  }

  async settings(): Promise<WireSettings> {
    return (await this.#http.json('GET', `${this.#base}/settings`)) as WireSettings;
  }

  async read(id: string, read: boolean): Promise<Notification | null> {
    return fromHub(await this.#http.json('PATCH', this.#item(id), { read }));
  }

  async dismiss(id: string): Promise<Notification | null> {
    return fromHub(await this.#http.json('DELETE', this.#item(id)));
  }

  /** Takes back a dismissal. The hub refuses it where a prompt was pressed. */
  async restore(id: string): Promise<Notification | null> {
    return fromHub(await this.#http.json('PATCH', this.#item(id), { dismissed: false }));
  }

  async readAll(): Promise<void> {
    await this.#http.json('POST', `${this.#base}/notifications/read_all`);
  }

  /** Presses a button. The hub answers a repeated press of the same button with the first answer. */
  async press(id: string, index: number): Promise<void> {
    await this.#http.json('POST', `${this.#item(id)}/actions/${String(index)}`);
  }

  #item(id: string): string {
    return `${this.#base}/notifications/${encodeURIComponent(id)}`;
  }

  async #follow(stop: AbortSignal): Promise<void> {
    this.#leads = true;
    await follow(this.#http, `${this.#base}/stream`, {
      position: () => this.#position,
      forget: () => { this.#position = null; },
      fresh: () => { this.#events.fresh(); },
      event: (event) => {
        this.#tabs.tell({ kind: 'event', event });
        this.#apply(event);
      },
      status: (status) => {
        this.#setStatus(status);
        this.#tellStatus();
      },
    }, stop);
    this.#leads = false;
  }

  #receive(message: TabMessage): void {
    if (message.kind === 'hello' && this.#leads) this.#tellStatus();
    if (message.kind === 'hide') this.#events.hide(message.id);
    // A tab whose credentials were refused shows no more.
    if (this.#leads || this.#status === 'ended') return;
    if (message.kind === 'status') this.#hearStatus(message.status, message.position);
    if (message.kind === 'event') this.#apply(message.event);
  }

  #hearStatus(status: StreamStatus, position: string | null): void {
    // The leading tab's credentials were refused; this tab leads next, with its own.
    if (status === 'ended') return;
    this.#position ??= position;
    this.#setStatus(status);
    if (!this.#listens) this.#events.fresh();
    this.#listens = true;
  }

  #tellStatus(): void {
    this.#tabs.tell({ kind: 'status', status: this.#status, position: this.#position });
  }

  #setStatus(status: StreamStatus): void {
    this.#status = status;
    this.#events.status(status);
  }

  /** Applies an event. What is older than the position was applied before; what is as old may be the rest of one change. */
  #apply({ type, data, id }: SseEvent): void {
    if (id !== null && this.#position !== null && Number(id) < Number(this.#position)) return;
    if (id !== null) this.#position = id;
    const change = parseChange(type, data);
    if (change !== null) this.#events.change(change);
  }
}

function parseChange(kind: string, data: string): Change | null {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return null;
  }
  if (kind === 'unread') return isRecord(value) && typeof value.count === 'number' ? { kind, count: value.count } : null;
  if (kind !== 'toast' && kind !== 'notification' && kind !== 'updated') return null;
  const item = fromHub(value);
  return item && { kind, item };
}
