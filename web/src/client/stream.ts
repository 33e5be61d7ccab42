// The person's stream: connects, reads, and connects again after the last position that was read.
import { backoff } from './backoff.ts';
import { HubError, type HubHttp } from './http.ts';
import { type SseEvent, SseParser } from './sse.ts';

/** The hub sends a comment every 15 seconds. A stream that is silent for longer is dead. */
const SILENCE_MS = 45_000;
/** A connection that lasted this long was a good one: after it, the delays begin anew. */
const GOOD_MS = 5_000;

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
export async function follow(http: HubHttp, path: string, events: StreamEvents, stop: AbortSignal): Promise<void> {
  let failures = 0;
  const stopped = (): boolean => stop.aborted;
  events.status('connecting');
  while (!stopped()) {
    const started = performance.now();
    const error = await readOnce(http, path, events, stop);
    if (stopped()) return;
    if (error.status === 401 || error.status === 403) {
      events.status('ended');
      return;
    }
    if (error.problem?.field === 'Last-Event-ID') events.forget();
    failures = performance.now() - started < GOOD_MS ? failures + 1 : 1;
    events.status('reconnecting');
    await pause(backoff(failures, Math.random(), error.retryAfter), stop);
  }
}

/** Reads one connection to its end; returns why it ended. */
async function readOnce(http: HubHttp, path: string, events: StreamEvents, stop: AbortSignal): Promise<HubError> {
  const silence = new Silence();
  const signal = AbortSignal.any([stop, silence.signal]);
  try {
    const position = events.position();
    const headers: Record<string, string> = { accept: 'text/event-stream' };
    if (position !== null) headers['last-event-id'] = position;
    const response = await http.send(path, { headers, signal });
    const type = response.headers.get('content-type') ?? '';
    if (!response.body || !type.startsWith('text/event-stream')) throw new HubError(0, 'the answer is not an event stream');
    events.status('live');
    if (position === null) events.fresh();
    await readBody(response.body, events, silence, signal);
    return new HubError(0, 'the stream ended');
  } catch (error) {
    return error instanceof HubError ? error : new HubError(0, String(error));
  } finally {
    silence.end();
  }
}

async function readBody(
  body: ReadableStream<Uint8Array>, events: StreamEvents, silence: Silence, signal: AbortSignal,
): Promise<void> {
  const [reader, decoder, parser] = [body.getReader(), new TextDecoder(), new SseParser()];
  // The body of a page's own `fetch` may not know the signal.
  const cancel = (): void => { reader.cancel().catch(() => undefined); };
  signal.addEventListener('abort', cancel, { once: true });
  try {
    for (;;) {
      silence.broken();
      const { done, value } = await reader.read();
      if (done) return;
      for (const event of parser.push(decoder.decode(value, { stream: true }))) events.event(event);
    }
  } finally {
    cancel();
  }
}

/** Aborts its signal after [`SILENCE_MS`] without a byte. */
class Silence {
  readonly #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly signal = this.#abort.signal;

  constructor() {
    this.broken();
  }

  broken(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => { this.#abort.abort(); }, SILENCE_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** Waits; ends early when it is stopped, or when the network or the tab is back. */
function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = new AbortController();
    const finish = (): void => {
      clearTimeout(timer);
      end.abort();
      resolve();
    };
    const timer = setTimeout(finish, milliseconds);
    stop.addEventListener('abort', finish, { signal: end.signal });
    window.addEventListener('online', finish, { signal: end.signal });
  });
}
