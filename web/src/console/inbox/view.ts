// Which items the inbox page shows: those of the filter, and those that the person has just read in it, which stay until the
// filter changes, so that nothing disappears under the pointer.
import type { Notification } from '../../notification.ts';
import { type Inbox, view } from '../../store/inbox.ts';

export class InboxView {
  #kept: ReadonlySet<string> = new Set();
  #inbox: Inbox | null = null;
  #items: readonly Notification[] = [];

  /** The items, newest first. The same list until the inbox changes. */
  of(inbox: Inbox): readonly Notification[] {
    const known = this.#inbox;
    if (known?.items === inbox.items && known.filter === inbox.filter && known.floor === inbox.floor) return this.#items;
    if (known?.filter !== inbox.filter) this.#kept = new Set();
    this.#inbox = inbox;
    this.#items = withKept(inbox, this.#kept);
    return this.#items;
  }

  keep(id: string): void {
    this.#kept = new Set([...this.#kept, id]);
    this.#inbox &&= { ...this.#inbox, items: new Map() };
  }
}

function withKept(inbox: Inbox, kept: ReadonlySet<string>): readonly Notification[] {
  const items = view(inbox);
  if (kept.size === 0) return items;
  const shown = new Set(items.map(({ id }) => id));
  const more = [...kept].flatMap((id) => inbox.items.get(id) ?? []).filter((item) => !shown.has(item.id) && item.dismissed_at === null);
  return more.length === 0 ? items : [...items, ...more].sort((one, other) => (one.id < other.id ? 1 : -1));
}
