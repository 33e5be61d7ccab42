import { type HubHttp } from './http.ts';
import { type SseEvent } from './sse.ts';
export type StreamStatus = 'connecting' | 'live' | 'reconnecting' | 'ended';
export interface StreamEvents {
    /** The position after which the stream continues; null = from now on. */
    position(): string | null;
    event(event: SseEvent): void;
    /** The hub does not know the position. */
    forget(): void;
    /** The stream began without a position: what happened before is not in it. */
    fresh(): void;
    status(status: StreamStatus): void;
}
/** Reads the stream until it is stopped or the hub no longer accepts the credentials. */
export declare function follow(http: HubHttp, path: string, events: StreamEvents, stop: AbortSignal): Promise<void>;
