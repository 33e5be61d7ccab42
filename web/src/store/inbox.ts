// The inbox as a pure state. Items have an id of UUID version 7, so the order of the ids is the order of their creation.
//
// A view is every known item that matches the filter and is not older than `floor`, the last item of the last page: what is
// older may be known by chance, but the items between it and the floor are not.
import type { Notification, NotificationType } from '../notification.ts';
import type { Problem } from '../problem.ts';

/** How many items are kept unless a page asks for more. Beyond it, the oldest are forgotten and are loaded again by paging. */
export const ITEMS_MAX = 1000;

export interface Filter {
  readonly state: 'unread' | 'all' | 'dismissed';
  readonly type: NotificationType | null;
  /** A text that the title, the message, the origin or the source has; without it, any. */
  readonly search?: string;
}

export type Connection = 'connecting' | 'live' | 'reconnecting' | 'ended';

export interface Inbox {
  readonly items: ReadonlyMap<string, Notification>;
  readonly itemsMax: number;
  /** As the hub counts them; null until it said so. */
  readonly unread: number | null;
  readonly filter: Filter;
  /** The oldest id of the loaded pages; '' = all pages are loaded; null = none is. */
  readonly floor: string | null;
  /** Where the next page begins; null = there is none. */
  readonly cursor: string | null;
  readonly loading: boolean;
  /** Why the last page could not be loaded. */
  readonly problem: Problem | null;
  readonly connection: Connection;
}

export const EMPTY_INBOX: Inbox = {
  items: new Map(),
  itemsMax: ITEMS_MAX,
  unread: null,
  filter: { state: 'unread', type: null },
  floor: null,
  cursor: null,
  loading: false,
  problem: null,
  connection: 'connecting',
};

/** What the filter shows, newest first. */
export function view({ items, filter, floor }: Inbox): Notification[] {
  if (floor === null) return [];
  const seen = [...items.values()].filter((item) => item.id >= floor && matches(item, filter));
  return seen.sort((one, other) => (one.id < other.id ? 1 : -1));
}

export function matches(item: Notification, { state, type, search = '' }: Filter): boolean {
  if (type !== null && item.type !== type) return false;
  if (search !== '' && !contains(item, search)) return false;
  switch (state) {
    case 'unread':
      return item.read_at === null && item.dismissed_at === null;
    case 'all':
      return item.dismissed_at === null;
    case 'dismissed':
      return item.dismissed_at !== null;
  }
}

/** As the hub searches: a text in one of the fields, in any case. */
function contains({ title, message, origin, source }: Notification, search: string): boolean {
  return [title, message, origin, source].some((field) => field?.toLowerCase().includes(search.toLowerCase()) ?? false);
}

/** Adds items, or replaces those with the same id. */
export function put(inbox: Inbox, items: readonly Notification[]): Inbox {
  return bounded({ ...inbox, items: joined(inbox, items) });
}

/** Adds a page of the current filter. `changed` are items that changed after the page was asked for: they win. */
export function addPage(inbox: Inbox, page: readonly Notification[], cursor: string | null, changed: ReadonlySet<string>): Inbox {
  const last = page.at(-1);
  const floor = cursor === null ? '' : (last?.id ?? inbox.floor ?? '');
  const fresh = page.filter((item) => !changed.has(item.id));
  return bounded({ ...inbox, items: joined(inbox, fresh), cursor, floor, loading: false, problem: null });
}

/** Begins another view. */
export function choose(inbox: Inbox, filter: Filter): Inbox {
  return { ...inbox, filter, floor: null, cursor: null, problem: null };
}

function joined(inbox: Inbox, items: readonly Notification[]): ReadonlyMap<string, Notification> {
  const all = new Map(inbox.items);
  for (const item of items) all.set(item.id, item);
  return all;
}

function bounded(inbox: Inbox): Inbox {
  const excess = inbox.items.size - inbox.itemsMax;
  if (excess <= 0) return inbox;
  const items = new Map(inbox.items);
  const [oldest = '', ...forgotten] = smallest(items.keys(), excess + 1).reverse();
  for (const id of forgotten) items.delete(id);
  const cut = inbox.floor !== null && inbox.floor < oldest;
  return cut ? { ...inbox, items, floor: oldest, cursor: oldest } : { ...inbox, items };
}

/** The `count` smallest ids in ascending order. A few of many are found without sorting all. */
function smallest(ids: Iterable<string>, count: number): string[] {
  let found: string[] = [];
  let limit: string | null = null;
  for (const id of ids) {
    if (limit !== null && id >= limit) continue;
    found.push(id);
    if (found.length < 2 * count + 100) continue;
    found = found.sort().slice(0, count);
    limit = found.at(-1) ?? null;
  }
  return found.sort().slice(0, count);
}
