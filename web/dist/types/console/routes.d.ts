export type PageName = 'inbox' | 'conversations' | 'settings' | 'live' | 'deliveries' | 'subscribers' | 'playground' | 'overview';
export interface Route {
    readonly page: PageName;
    /** What the page shows in detail: a conversation, an event, a subscriber. */
    readonly id: string | null;
    /** Whose it is, where an id is unique only per person. */
    readonly user: string | null;
}
export declare const PERSON_PAGES: readonly PageName[];
export declare const ADMIN_PAGES: readonly PageName[];
export declare const TITLES: Readonly<Record<PageName, string>>;
/** The route of an address; null if there is no such page. */
export declare function routeOf(pathname: string, search?: string): Route | null;
export declare function pathOf({ page, id, user }: Route): string;
export declare function to(page: PageName, id?: string | null, user?: string | null): Route;
