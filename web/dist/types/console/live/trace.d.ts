import type { Fate, Trace } from '../wire.ts';
export interface Step {
    /** When it happened, for the order. */
    readonly at: string;
    readonly title: string;
    /** Who did it, such as a subscriber. */
    readonly by: string | null;
    readonly reason: string | null;
    /** Text that an agent or a person read, exactly. */
    readonly text: string | null;
    /** The time since the event was accepted. */
    readonly time: string;
}
export declare function stepsOf(trace: Trace): readonly Step[];
/** The states that the event's notifications have now. */
export declare function fatesOf({ id, user_id: user, notifications }: Trace): readonly Fate[];
