import type { StreamStatus } from '../../client/stream.ts';
import { Observable } from '../../store/observable.ts';
import type { Api } from '../api.ts';
import type { Trace } from '../wire.ts';
import { type Live } from './store.ts';
/** Reads the live stream, and applies what arrived once per animation frame. */
export declare class LiveFeed {
    #private;
    readonly live: Observable<Live>;
    readonly status: Observable<StreamStatus>;
    constructor(api: Api);
    /** Loads the newest stored events. */
    load(api: Api): Promise<void>;
    /** Takes over what a trace says of its event's notifications. */
    traced(trace: Trace): void;
    /** Events per second, of the last seconds. */
    rate(now?: number): number;
    close(): void;
}
