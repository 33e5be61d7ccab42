import { beforeEach, expect, test, vi } from 'vitest';
import { backoff } from '../src/client/backoff.ts';
import { HubHttp } from '../src/client/http.ts';
import { type StreamStatus, follow } from '../src/client/stream.ts';

vi.stubGlobal('window', new EventTarget());

beforeEach(() => {
  vi.useFakeTimers();
});

/** A stream that sends these pieces and ends, or stays silent. */
function body(pieces: readonly string[], stays = false): Response {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      if (!stays) controller.close();
    },
  });
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
}

interface Run {
  readonly asked: (string | null)[];
  readonly seen: string[];
  readonly statuses: StreamStatus[];
  readonly stop: AbortController;
  readonly done: Promise<void>;
  fresh: number;
}

/** Follows a stream whose connections answer one after the other. */
function run(answers: (() => Response | Promise<Response>)[]): Run {
  let position: string | null = null;
  const state: Omit<Run, 'done'> = { asked: [], seen: [], statuses: [], stop: new AbortController(), fresh: 0 };
  const http = new HubHttp({
    fetch: async (_, init) => {
      state.asked.push(new Headers(init.headers).get('last-event-id'));
      const answer = answers.shift() ?? (() => body([], true));
      const ended = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => { reject(new Error('aborted')); }));
      return Promise.race([ended, Promise.resolve(answer())]);
    },
  });
  const done = follow(http, '/v1/users/ada/stream', {
    position: () => position,
    forget: () => { position = null; },
    fresh: () => { state.fresh += 1; },
    event: ({ data, id }) => {
      state.seen.push(data);
      position = id;
    },
    status: (status) => { state.statuses.push(status); },
  }, state.stop.signal);
  return Object.assign(state, { done });
}

test('a stream that ends is continued after its last event', async () => {
  const stream = run([() => body(['id: 7\ndata: a\n\n']), () => body(['id: 8\ndata: b\n\n'], true)]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(stream.asked).toEqual([null, '7']);
  expect(stream.seen).toEqual(['a', 'b']);
  expect(stream.statuses).toEqual(['connecting', 'live', 'reconnecting', 'live']);
  expect(stream.fresh).toBe(1);
  stream.stop.abort();
  await vi.advanceTimersByTimeAsync(60_000);
  await stream.done;
});

test.each([401, 403])('status %i ends it', async (status) => {
  const stream = run([() => new Response('{}', { status })]);
  await stream.done;
  expect(stream.statuses.at(-1)).toBe('ended');
  expect(stream.asked).toHaveLength(1);
});

test('it waits as long as the hub asks for', async () => {
  const stream = run([() => new Response('{}', { status: 429, headers: { 'retry-after': '20' } })]);
  await vi.advanceTimersByTimeAsync(19_900);
  expect(stream.asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(700);
  expect(stream.asked).toHaveLength(2);
  stream.stop.abort();
});

test('a position that the hub does not know is forgotten', async () => {
  const refused = JSON.stringify({ error: { code: 'validation_error', message: 'is not one of ours', field: 'Last-Event-ID' } });
  const stream = run([() => body(['id: 7\ndata: a\n\n']), () => new Response(refused, { status: 400 })]);
  await vi.advanceTimersByTimeAsync(5000);
  expect(stream.asked).toEqual([null, '7', null]);
  expect(stream.fresh).toBe(2);
  stream.stop.abort();
});

test('a silent connection is given up', async () => {
  const stream = run([() => body([], true)]);
  await vi.advanceTimersByTimeAsync(44_000);
  expect(stream.asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2000);
  expect(stream.asked).toHaveLength(2);
  stream.stop.abort();
});

test('the network that is back ends the wait', async () => {
  const stream = run([() => Promise.reject(new Error('offline')), () => Promise.reject(new Error('offline'))]);
  await vi.advanceTimersByTimeAsync(0);
  expect(stream.asked).toHaveLength(1);
  window.dispatchEvent(new Event('online'));
  await vi.advanceTimersByTimeAsync(0);
  expect(stream.asked).toHaveLength(2);
  stream.stop.abort();
});

test('delays grow to half a minute and are never the same for all', () => {
  expect([1, 2, 3, 4].map((failures) => backoff(failures, 1))).toEqual([500, 1000, 2000, 4000]);
  expect([1, 2, 3, 4].map((failures) => backoff(failures, 0))).toEqual([250, 500, 1000, 2000]);
  expect(backoff(1000, 1)).toBe(30_000);
  expect(backoff(1, 0, 20_000)).toBe(20_000);
});
