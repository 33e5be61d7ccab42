import { Observable } from '../../store/observable.ts';
import type { Page } from '../wire.ts';
export interface Pages<Item> {
    readonly items: readonly Item[];
    /** Where the next page begins; null = there is none. */
    readonly cursor: string | null;
    readonly loading: boolean;
    /** Whether the first page has come. */
    readonly loaded: boolean;
    readonly problem: string | null;
}
export declare class PagedList<Item> {
    #private;
    readonly state: Observable<Pages<Item>>;
    constructor(load: (cursor: string | null) => Promise<Page<Item>>, key: (item: Item) => string);
    /** Begins anew; what is shown stays until the first page has come. */
    reload(): Promise<void>;
    /** Loads the next page, or the first one. */
    more(): Promise<void>;
    /** Loads the last page again, for a list that grows at its end. */
    tail(): Promise<void>;
    /** Replaces the item with the same key. */
    replace(item: Item): void;
    remove(key: string): void;
}
