import { describe, expect, test } from 'vitest';
import { MESSAGES_MAX, Transcript } from '../src/console/conversations/transcript.ts';
import type { Message, Page } from '../src/console/wire.ts';

const message = (at: number): Message => ({
  id: `m${String(at)}`, role: 'system', content: '', timestamp: '', source: 'user', notification_id: null, call_id: 'c',
});

/** A hub with so many messages, in pages of so many. */
class Hub {
  readonly asked: (string | null)[] = [];
  fails = false;

  constructor(public count: number, readonly size = 100) {}

  readonly load = (cursor: string | null): Promise<Page<Message>> => {
    this.asked.push(cursor);
    if (this.fails) return Promise.reject(new Error('broken'));
    const end = cursor === null ? this.count : Number(cursor);
    const start = Math.max(0, end - this.size);
    const items = Array.from({ length: end - start }, (_, at) => message(end - 1 - at));
    return Promise.resolve({ items, next_cursor: start === 0 ? null : String(start) });
  };
}

const numbers = (transcript: Transcript): number[] => transcript.state.get().messages.map(({ id }) => Number(id.slice(1)));
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, at) => from + at);

describe('a transcript', () => {
  test('begins with the newest messages; older ones come before them', async () => {
    const hub = new Hub(1050);
    const transcript = new Transcript(hub.load);
    await transcript.older();
    expect(numbers(transcript)).toEqual(range(950, 1050));
    await transcript.older();
    expect(numbers(transcript)).toEqual(range(850, 1050));
    expect(hub.asked).toEqual([null, '950']);
  });

  test('ends at the oldest one', async () => {
    const hub = new Hub(150);
    const transcript = new Transcript(hub.load);
    for (let page = 0; page < 4; page++) await transcript.older();
    expect(numbers(transcript)).toEqual(range(0, 150));
    expect(hub.asked).toEqual([null, '50']);
  });

  test('new ones come after the last, also those of several pages, and keep what is known', async () => {
    const hub = new Hub(150);
    const transcript = new Transcript(hub.load);
    await transcript.older();
    hub.count = 420;
    await transcript.newer(true);
    expect(numbers(transcript)).toEqual(range(50, 420));
    await transcript.older();
    expect(numbers(transcript)).toEqual(range(0, 420));
    expect(transcript.state.get().cursor).toBeNull();
  });

  test('begins anew where too many came to close the gap', async () => {
    const hub = new Hub(50);
    const transcript = new Transcript(hub.load);
    await transcript.older();
    hub.count = 5000;
    await transcript.newer(true);
    expect(numbers(transcript)).toEqual(range(4000, 5000));
    await transcript.older();
    expect(numbers(transcript)[0]).toBe(3900);
  });

  test('is bounded while its end is shown, and not while the person reads further up', async () => {
    const hub = new Hub(MESSAGES_MAX + 100, 1000);
    const transcript = new Transcript(hub.load);
    for (let page = 0; page < 6; page++) await transcript.older();
    hub.count += 1;
    await transcript.newer(false);
    expect(numbers(transcript)).toHaveLength(MESSAGES_MAX + 101);
    await transcript.newer(true);
    expect(numbers(transcript)).toEqual(range(hub.count - 1000, hub.count));
  });

  test('asks for one page at a time, and shows none twice', async () => {
    const hub = new Hub(400);
    const transcript = new Transcript(hub.load);
    await Promise.all([transcript.older(), transcript.older(), transcript.newer(true), transcript.newer(true)]);
    expect(numbers(transcript)).toEqual(range(300, 400));
    expect(hub.asked).toEqual([null, null, null]);
  });

  test('says why a page could not be loaded, and repeats the request', async () => {
    const hub = new Hub(250);
    const transcript = new Transcript(hub.load);
    await transcript.older();
    hub.fails = true;
    await transcript.older();
    expect(transcript.state.get()).toMatchObject({ problem: 'The messages could not be loaded: broken', loading: false });
    hub.fails = false;
    await transcript.retry();
    expect(transcript.state.get().problem).toBeNull();
    expect(numbers(transcript)).toEqual(range(50, 250));
  });
});
