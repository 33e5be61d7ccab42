import type { ListedEvent, Subscriber } from '../wire.ts';
/** The pending notifications of one agent, as the stream says them. */
export interface Hint {
    readonly agent: string;
    readonly notifications: readonly string[];
    readonly count: number;
}
export interface Pending {
    readonly id: string;
    readonly agent: string;
    /** The subscriber's name for people. */
    readonly name: string;
    readonly point: string;
    /** The types of its events, each with how often it came. */
    readonly events: readonly string[];
}
export declare function pendingOf(hints: Iterable<Hint>, events: readonly ListedEvent[], subscribers: readonly Subscriber[]): readonly Pending[];
