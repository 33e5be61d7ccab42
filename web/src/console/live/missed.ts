import type { Api } from '../api.ts';
import type { ListedEvent } from '../wire.ts';
import { type Gap, ROWS_MAX } from './store.ts';

const PAGE = 100;
/** How many pages are loaded: as many events as the page shows. */
const PAGES = ROWS_MAX / PAGE;

export interface MissedEvents {
  /** Newest first. */
  readonly events: readonly ListedEvent[];
  /** Where more are missing than were loaded. */
  readonly gap: Gap | null;
}

/** Loads the events that came after `before`, the newest ones if they are too many. */
export async function loadMissed(api: Pick<Api, 'list'>, before: ListedEvent): Promise<MissedEvents> {
  const events: ListedEvent[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < PAGES; page++) {
    const answer: { items: readonly ListedEvent[]; next_cursor: string | null } =
      await api.list<ListedEvent>('/v1/events', { since: before.accepted_at, limit: PAGE, cursor });
    events.push(...answer.items.filter(({ id }) => id > before.id));
    cursor = answer.next_cursor;
    if (cursor === null || answer.items.some(({ id }) => id <= before.id)) return { events, gap: null };
  }
  const oldest = events.at(-1)?.accepted_at ?? new Date().toISOString();
  return { events, gap: { from: before.accepted_at, to: oldest } };
}
