import type { SseEvent } from './sse.ts';
import type { StreamStatus } from './stream.ts';
/** What one tab tells the others. */
export type TabMessage = {
    readonly kind: 'event';
    readonly event: SseEvent;
} | {
    readonly kind: 'status';
    readonly status: StreamStatus;
    readonly position: string | null;
}
/** A toast's time is over: it was seen. */
 | {
    readonly kind: 'hide';
    readonly id: string;
}
/** A new tab asks the leading one for its status. */
 | {
    readonly kind: 'hello';
};
export declare class Tabs {
    #private;
    /** `name` has everything that two tabs must have in common to share a stream. Null = this tab shares nothing. */
    constructor(name: string | null, receive: (message: TabMessage) => void);
    tell(message: TabMessage): void;
    /** Waits until this tab leads, runs `work`, and lets another tab lead when it ends. */
    lead(work: (stop: AbortSignal) => Promise<void>): Promise<void>;
    close(): void;
}
