import { SharedStream } from '../../client/shared-stream.ts';
import type { SseEvent } from '../../client/sse.ts';
import type { StreamStatus } from '../../client/stream.ts';
import { isRecord } from '../../notification.ts';
import { Observable } from '../../store/observable.ts';
import type { Api } from '../api.ts';
import type { Fate, ListedEvent, Trace } from '../wire.ts';
import { fatesOf } from './trace.ts';
import { type Batch, EMPTY_LIVE, type Live, ROWS_MAX, addStored, apply } from './store.ts';

/** How many events are shown at the start. */
const FIRST = 100;
/** The seconds over which the rate is counted. */
const RATE_S = 5;

/** Reads the live stream, and applies what arrived once per animation frame. */
export class LiveFeed {
  readonly live = new Observable<Live>(EMPTY_LIVE);
  readonly status = new Observable<StreamStatus>('connecting');
  readonly #stream: SharedStream;
  #events: ListedEvent[] = [];
  #fates: Fate[] = [];
  #skipped = 0;
  #frame = 0;
  /** When each of the last events arrived. */
  #arrivals: number[] = [];

  constructor(api: Api) {
    this.#stream = new SharedStream(api.http, '/v1/events/stream', {
      event: (event) => { this.#receive(event); },
      status: (status) => { this.status.set(status); },
    });
  }

  /** Loads the newest stored events. */
  async load(api: Api): Promise<void> {
    const { items } = await api.list<ListedEvent>('/v1/events', { limit: FIRST });
    this.live.update((live) => addStored(live, items));
  }

  /** Takes over what a trace says of its event's notifications. */
  traced(trace: Trace): void {
    this.live.update((live) => apply(live, { events: [], fates: fatesOf(trace), skipped: 0 }));
  }

  /** Events per second, of the last seconds. */
  rate(now = performance.now()): number {
    this.#arrivals = this.#arrivals.filter((at) => now - at < RATE_S * 1000);
    return Math.round((this.#arrivals.length / RATE_S) * 10) / 10;
  }

  close(): void {
    this.#stream.close();
    cancelAnimationFrame(this.#frame);
  }

  #receive({ type, data }: SseEvent): void {
    const value = parsed(data);
    if (value === null) return;
    if (type === 'event') {
      this.#events.push(value as unknown as ListedEvent);
      this.#arrivals.push(performance.now());
    }
    if (type === 'fate') this.#fates.push(value as unknown as Fate);
    if (type === 'skipped' && typeof value.count === 'number') this.#skipped += value.count;
    this.#bound();
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => { this.#flush(); });
  }

  /** A tab in the background draws no frames: only what would be shown is kept. */
  #bound(): void {
    if (this.#events.length > 2 * ROWS_MAX) this.#events = this.#events.slice(-ROWS_MAX);
    if (this.#fates.length > 20 * ROWS_MAX) this.#fates = this.#fates.slice(-10 * ROWS_MAX);
    if (this.#arrivals.length > 20_000) this.#arrivals = this.#arrivals.slice(-10_000);
  }

  #flush(): void {
    const batch: Batch = { events: this.#events, fates: this.#fates, skipped: this.#skipped };
    [this.#events, this.#fates, this.#skipped, this.#frame] = [[], [], 0, 0];
    this.live.update((live) => apply(live, batch));
  }
}

function parsed(data: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
