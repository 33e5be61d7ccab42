import type { Fate, ListedEvent } from '../wire.ts';
import { type Group, type Outcome } from './outcome.ts';
/** How many rows the page keeps, and how many wait while it is paused. */
export declare const ROWS_MAX = 500;
export interface LiveRow {
    readonly event: ListedEvent;
    readonly outcome: Outcome;
    /** The latest fate of each of its notifications. */
    readonly fates: ReadonlyMap<string, Fate>;
}
export interface Live {
    /** Newest first. */
    readonly rows: readonly LiveRow[];
    readonly paused: boolean;
    /** What arrived while it is paused, newest first. */
    readonly waiting: readonly LiveRow[];
    /** How many arrived while it is paused, also those that are no longer kept. */
    readonly waitingCount: number;
    /** How many entries the hub left out because this reader was too slow. */
    readonly skipped: number;
}
export declare const EMPTY_LIVE: Live;
/** What the stream said since the last frame. */
export interface Batch {
    readonly events: readonly ListedEvent[];
    readonly fates: readonly Fate[];
    readonly skipped: number;
}
/** Applies a batch: new rows at the top, or aside while it is paused; fates change rows in place. */
export declare function apply(live: Live, { events, fates, skipped }: Batch): Live;
export declare function pause(live: Live): Live;
/** Shows what arrived meanwhile. */
export declare function resume(live: Live): Live;
export interface LiveFilter {
    readonly text: string;
    readonly group: Group | null;
}
export declare function filtered(rows: readonly LiveRow[], { text, group }: LiveFilter): readonly LiveRow[];
/** Adds events that were stored before the page was opened, as older rows. What became of them since is not known. */
export declare function addStored(live: Live, events: readonly ListedEvent[]): Live;
