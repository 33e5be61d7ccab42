import type { HubHttp } from './http.ts';
import type { SseEvent } from './sse.ts';
import { type StreamStatus } from './stream.ts';
export interface SharedStreamEvents {
    event(event: SseEvent): void;
    status(status: StreamStatus): void;
}
export declare class SharedStream {
    #private;
    constructor(http: HubHttp, path: string, events: SharedStreamEvents);
    close(): void;
}
