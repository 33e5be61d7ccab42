import { afterEach, describe, expect, test, vi } from 'vitest';
import { Bellwire, type BellwireOptions, type PromptContext } from '../src/bellwire.ts';
import { view } from '../src/store/inbox.ts';
import { promptAction, toastItem } from './fixtures.ts';

let open: Bellwire | null = null;
afterEach(() => {
  vi.useRealTimers();
  open?.close();
});

/** A page whose hub answers by this function; only the calls of buttons are recorded. */
function page(answer: (method: string, path: string) => Response, options: BellwireOptions = {}): { bellwire: Bellwire; calls: string[] } {
  const calls: string[] = [];
  const fetch = (path: string, init: RequestInit): Promise<Response> => {
    const method = init.method ?? 'GET';
    if (method === 'GET') return Promise.resolve(new Response('{"items":[],"next_cursor":null}', { status: path.endsWith('/stream') ? 401 : 200 }));
    calls.push(`${method} ${path}`);
    return Promise.resolve(answer(method, path));
  };
  open = new Bellwire({ user: 'ada', shareTabs: false, fetch, ...options });
  return { bellwire: open, calls };
}

const ok = (): Response => new Response('{}');
const asking = toastItem('n1', { duration: 0, actions: [promptAction, { label: 'Later', action: 'dismiss', prompt: null, pressed_at: null }] });

describe('a pressed prompt', () => {
  test('of a hub item with a conversation is a POST, then the page is told that it is delivered', async () => {
    const told = vi.fn<(prompt: string, context: PromptContext) => void>();
    const { bellwire, calls } = page(ok, { onPrompt: told });
    bellwire.show(asking);
    await bellwire.press('n1', 0);
    expect(calls).toEqual(['POST /v1/users/ada/notifications/n1/actions/0']);
    expect(told).toHaveBeenCalledExactlyOnceWith('show me the build logs', { notification: asking, label: 'View Logs', delivered: true });
    expect(bellwire.toasts.get().toasts[0]?.phase).toBe('done');
  });

  test('of a hub item with a conversation needs no handler', async () => {
    const { bellwire, calls } = page(ok);
    bellwire.show(asking);
    expect(bellwire.blocked(asking, 0)).toBeNull();
    await bellwire.press('n1', 0);
    expect(calls).toHaveLength(1);
  });

  test('of a hub item without a conversation goes to the page alone, and the item is dismissed', async () => {
    const told = vi.fn<(prompt: string, context: PromptContext) => void>();
    const { bellwire, calls } = page(ok, { onPrompt: told });
    bellwire.show({ ...asking, conversation_id: null });
    await bellwire.press('n1', 0);
    expect(told.mock.calls[0]?.[1]).toMatchObject({ delivered: false });
    expect(calls).toEqual(['DELETE /v1/users/ada/notifications/n1']);
  });

  test('of the page itself goes to the page alone', async () => {
    const told = vi.fn<(prompt: string, context: PromptContext) => void>();
    open = new Bellwire({ onPrompt: told });
    open.show({ ...asking, from: 'page', conversation_id: null });
    await open.press('n1', 0);
    expect(told).toHaveBeenCalledOnce();
    expect(open.toasts.get().toasts[0]?.phase).toBe('done');
  });

  test('without a handler is blocked where the hub cannot send it', async () => {
    open = new Bellwire();
    const item = { ...asking, from: 'page', conversation_id: null } as const;
    open.show(item);
    expect(open.blocked(item, 0)).toBe('no_handler');
    expect(open.blocked(item, 1)).toBeNull();
    await open.press('n1', 0);
    expect(open.requests.get().size).toBe(0);
    open.onPrompt = () => undefined;
    expect(open.blocked(item, 0)).toBeNull();
  });

  test('whose handler fails can be sent again', async () => {
    const told = vi.fn<() => Promise<void>>().mockRejectedValueOnce(new Error('the chat is busy')).mockResolvedValueOnce();
    open = new Bellwire({ onPrompt: told });
    open.show({ ...asking, from: 'page', conversation_id: null });
    await open.press('n1', 0);
    expect(open.requests.get().get('n1')).toMatchObject({ state: 'failed', problem: { code: 'failed', detail: 'the chat is busy' } });
    expect(open.toasts.get().toasts[0]?.phase).toBe('busy');
    await open.retry('n1');
    expect(open.toasts.get().toasts[0]?.phase).toBe('done');
  });

  test('is sent once, however often it is pressed meanwhile', async () => {
    const { bellwire, calls } = page(ok);
    bellwire.show(asking);
    await Promise.all([bellwire.press('n1', 0), bellwire.press('n1', 0)]);
    expect(calls).toHaveLength(1);
  });

  test('that was answered elsewhere says so and goes', async () => {
    const settled = { error: { code: 'conflict', message: 'pressed', settled_by: { action: 'prompt', index: 1, label: 'Retry', at: 'now' } } };
    const { bellwire } = page(() => new Response(JSON.stringify(settled), { status: 409 }));
    bellwire.show(asking);
    await bellwire.press('n1', 0);
    expect(bellwire.requests.get().get('n1')?.problem).toEqual({ code: 'answered', detail: 'Retry' });
    expect(bellwire.toasts.get().toasts[0]?.phase).toBe('done');
  });
});

test('a dismissal that failed brings the toast back', async () => {
  let status = 503;
  const { bellwire, calls } = page(() => new Response('{}', { status }));
  bellwire.show(asking);
  const dismissed = bellwire.dismiss('n1');
  expect(bellwire.toasts.get().toasts[0]?.phase).toBe('leaving');
  await dismissed;
  expect(bellwire.toasts.get().toasts[0]?.phase).toBe('busy');
  expect(bellwire.requests.get().get('n1')?.problem?.code).toBe('unreachable');
  status = 200;
  await bellwire.retry('n1');
  expect(bellwire.toasts.get().toasts[0]?.phase).toBe('leaving');
  expect(calls).toHaveLength(2);
});

test('a token and headers are sent with every request, never in the address', async () => {
  const requests: [string, Headers][] = [];
  const fetch = (path: string, init: RequestInit): Promise<Response> => {
    requests.push([path, new Headers(init.headers)]);
    return Promise.resolve(new Response('{}', { status: 401 }));
  };
  open = new Bellwire({ user: 'ada lovelace', shareTabs: false, fetch, token: () => Promise.resolve('secret'), headers: () => ({ 'x-page': '1' }) });
  await vi.waitFor(() => { expect(requests).toHaveLength(1); });
  expect(requests[0]?.[0]).toBe('/v1/users/ada%20lovelace/stream');
  expect(requests[0]?.[1].get('authorization')).toBe('Bearer secret');
  expect(requests[0]?.[1].get('x-page')).toBe('1');
  expect(open.inbox.get().connection).toBe('ended');
});

test('a page that comes after the filter was changed is not shown under the new one', async () => {
  const asked: string[] = [];
  const waiting: ((response: Response) => void)[] = [];
  const fetch = (path: string): Promise<Response> => {
    if (!path.includes('?')) return Promise.resolve(new Response('{}', { status: 401 }));
    asked.push(path);
    return new Promise((resolve) => waiting.push(resolve));
  };
  const list = (id: string): Response => new Response(JSON.stringify({ items: [{ ...toastItem(id), dismissed_at: id === 'gone' ? 'now' : null }], next_cursor: null }));
  open = new Bellwire({ user: 'ada', shareTabs: false, fetch });
  const ids = (): string[] => view((open ?? new Bellwire()).inbox.get()).map(({ id }) => id);
  open.choose({ state: 'all', type: null });
  open.choose({ state: 'dismissed', type: null });
  expect(asked).toHaveLength(1);
  waiting.shift()?.(list('there'));
  await vi.waitFor(() => { expect(asked).toHaveLength(2); });
  expect(ids()).toEqual([]);
  expect(asked[1]).toContain('state=dismissed');
  waiting.shift()?.(list('gone'));
  await vi.waitFor(() => { expect(ids()).toEqual(['gone']); });
});

describe('what the stream says', () => {
  /** A page with a stream that stays open, and the function that sends through it. */
  function streaming(answer: (method: string) => Response = ok): { bellwire: Bellwire; send: (...items: object[]) => void; changes: () => number } {
    let stream: ReadableStreamDefaultController<Uint8Array> | null = null;
    const body = new ReadableStream<Uint8Array>({ start: (controller) => { stream = controller; } });
    const fetch = (path: string, { method = 'GET' }: RequestInit): Promise<Response> => {
      if (path.endsWith('/stream')) return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
      if (path.endsWith('/settings')) return Promise.resolve(new Response('{"toasts":{"enabled":true},"muted_origins":[]}'));
      return Promise.resolve(method === 'GET' ? new Response('{"items":[],"next_cursor":null}') : answer(method));
    };
    const bellwire = new Bellwire({ user: 'ada', shareTabs: false, fetch });
    open = bellwire;
    const send = (...items: object[]): void => {
      stream?.enqueue(new TextEncoder().encode(items.map((item) => `event: notification\ndata: ${JSON.stringify(item)}\n\n`).join('')));
    };
    let count = 0;
    let known = bellwire.inbox.get().items;
    bellwire.inbox.subscribe(() => {
      if (bellwire.inbox.get().items !== known) count += 1;
      known = bellwire.inbox.get().items;
    });
    return { bellwire, send, changes: () => count };
  }
  const started = (bellwire: Bellwire): Promise<void> => vi.waitFor(() => { expect(bellwire.inbox.get().floor).toBe(''); });

  test('is added to the inbox once for all of a frame', async () => {
    const { bellwire, send, changes } = streaming();
    await started(bellwire);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const before = changes();
    for (let at = 0; at < 50; at++) {
      send(toastItem(`n${String(at + 10)}`));
      await new Promise(setImmediate);
    }
    vi.advanceTimersByTime(1000);
    expect([bellwire.inbox.get().items.size, changes() - before]).toEqual([50, 1]);
  });

  test('does not undo what the hub answered later', async () => {
    const { bellwire, send } = streaming(() => new Response(JSON.stringify(toastItem('n1', { read_at: 'now' }))));
    await started(bellwire);
    const reads: Promise<void>[] = [];
    bellwire.arrived(({ id }) => { if (id === 'n1') reads.push(bellwire.read(id, true)); });
    send(toastItem('n1'), toastItem('n2'));
    await vi.waitFor(() => { expect(bellwire.inbox.get().items.size).toBe(2); });
    await Promise.all(reads);
    expect(bellwire.inbox.get().items.get('n1')?.read_at).toBe('now');
  });
});
