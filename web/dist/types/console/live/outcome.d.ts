import type { Fate, ListedEvent } from '../wire.ts';
export type Group = 'told' | 'held' | 'not';
export interface Outcome {
    readonly group: Group;
    /** The style of the badge. */
    readonly look: 'good' | 'held' | 'waits' | 'bad' | 'plain';
    readonly text: string;
}
/** The most telling outcome of an event: what was told counts more than what waits, and that more than what was left out. */
export declare function outcomeOf(event: Pick<ListedEvent, 'verdicts'>, fates: ReadonlyMap<string, Fate>): Outcome;
