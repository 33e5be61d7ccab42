import { type EventType } from '../event-types.ts';
import type { Subscriber } from '../wire.ts';
/** Whether a subscriber's pattern takes a type: `*` is one part, or all of the rest at the end. */
export declare function listens(pattern: string, type: string): boolean;
export declare function sampleEvent({ type, severity, fields }: EventType): Record<string, unknown>;
/** One event of each known type that it takes, at most two; its first type where none is known. */
export declare function samplesFor({ types, severity_filter: least }: Pick<Subscriber, 'types' | 'severity_filter'>): readonly Record<string, unknown>[];
