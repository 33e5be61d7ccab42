import type { Notification, NotificationType } from '../notification.js';
import type { Problem } from '../problem.js';
/** How many items are kept unless a page asks for more. Beyond it, the oldest are forgotten and are loaded again by paging. */
export declare const ITEMS_MAX = 1000;
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
export declare const EMPTY_INBOX: Inbox;
/** What the filter shows, newest first. */
export declare function view({ items, filter, floor }: Inbox): Notification[];
export declare function matches(item: Notification, { state, type, search }: Filter): boolean;
/** Adds items, or replaces those with the same id. */
export declare function put(inbox: Inbox, items: readonly Notification[]): Inbox;
/** Adds a page of the current filter. `changed` are items that changed after the page was asked for: they win. */
export declare function addPage(inbox: Inbox, page: readonly Notification[], cursor: string | null, changed: ReadonlySet<string>): Inbox;
/** Begins another view. */
export declare function choose(inbox: Inbox, filter: Filter): Inbox;
