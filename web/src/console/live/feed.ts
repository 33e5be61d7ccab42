import { SharedStream } from '../../client/shared-stream.ts';
import type { SseEvent } from '../../client/sse.ts';
import type { StreamStatus } from '../../client/stream.ts';
import { isRecord } from '../../notification.ts';
import { Observable } from '../../store/observable.ts';
import { type Api, explain } from '../api.ts';
import { exactTime } from '../format.ts';
import type { Fate, ListedEvent, Trace } from '../wire.ts';
import type { Workspace } from '../workspace.ts';
import { loadMissed } from './missed.ts';
import { type Batch, EMPTY_LIVE, type Live, ROWS_MAX, addMissed, addStored, apply, doubt } from './store.ts';
import { fatesOf } from './trace.ts';

/** How many events are shown at the start. */
const FIRST = 100;
/** The seconds over which the rate is counted. */
const RATE_S = 5;

/** Reads the live stream, and applies what arrived once per animation frame. After a lost connection it loads what it missed. */
export class LiveFeed {
  readonly live = new Observable<Live>(EMPTY_LIVE);
  readonly status = new Observable<StreamStatus>('connecting');
  /** Why stored events could not be loaded. */
  readonly problem = new Observable<string | null>(null);
  readonly #api: Api;
  readonly #stream: SharedStream;
  #events: ListedEvent[] = [];
  #fates: Fate[] = [];
  #skipped = 0;
  #frame = 0;
  /** When each of the last events arrived. */
  #arrivals: number[] = [];
  /** The last event before the connection was lost; null = it was not lost, or no event was known. */
  #before: ListedEvent | null = null;
  #losses = 0;

  constructor({ api, sessionKey }: Workspace) {
    this.#api = api;
    this.#stream = new SharedStream(api.http, '/v1/events/stream', sessionKey, {
      event: (event) => { this.#receive(event); },
      status: (status) => { this.#changed(status); },
    });
  }

  /** Loads the newest stored events, or those that came while the connection was lost. */
  async load(): Promise<void> {
    const [before, losses] = [this.#before, this.#losses];
    try {
      if (before === null) await this.#loadFirst();
      else await this.#loadMissed(before);
      this.problem.set(null);
      if (losses === this.#losses) this.#before = null;
    } catch (error) {
      const what = before === null ? 'Earlier events' : `Events since ${exactTime(before.accepted_at)}`;
      this.problem.set(explain(`${what} could not be loaded`, error));
    }
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

  #changed(status: StreamStatus): void {
    const was = this.status.get();
    if (was === 'live' && status !== 'live') this.#lost();
    this.status.set(status);
    if (was !== 'live' && status === 'live') {
      this.live.update(doubt);
      void this.load();
    }
  }

  #lost(): void {
    const { waiting, rows } = this.live.get();
    this.#losses += 1;
    this.#before ??= this.#events.at(-1) ?? waiting[0]?.event ?? rows[0]?.event ?? null;
  }

  async #loadFirst(): Promise<void> {
    const { items } = await this.#api.list<ListedEvent>('/v1/events', { limit: FIRST });
    this.live.update((live) => addStored(live, items));
  }

  async #loadMissed(before: ListedEvent): Promise<void> {
    const missed = await loadMissed(this.#api, before);
    this.live.update((live) => addMissed(live, missed.events, missed.gap));
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
