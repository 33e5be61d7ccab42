import { describe, expect, test } from 'vitest';
import { outcomeOf } from '../src/console/live/outcome.ts';
import { loadMissed } from '../src/console/live/missed.ts';
import { EMPTY_LIVE, ROWS_MAX, addMissed, addStored, apply, doubt, filtered, pause, resume } from '../src/console/live/store.ts';
import { fatesOf, stepsOf } from '../src/console/live/trace.ts';
import type { Fate, ListedEvent, Trace, Verdict } from '../src/console/wire.ts';

const verdict = (kind: Verdict['verdict'], more: Partial<Verdict> = {}): Verdict => ({
  subscriber: 'tool_failure', conversation_id: 'chat', agent: 'main', verdict: kind, reason: 'because', notification_id: 'n1', ...more,
});
const event = (id: string, more: Partial<ListedEvent> = {}): ListedEvent => ({
  id, type: 'tool.call.failure', source: 'executor', severity: 'error', timestamp: '', payload: {}, dedupe_key: null, conversation_id: 'chat',
  agent: 'main', user_id: 'ada', correlation_id: null, accepted_at: '2026-01-03T15:30:00Z', filtered: 14, verdicts: [verdict('held')], ...more,
});
const fate = (state: string, more: Partial<Fate> = {}): Fate => ({
  notification_id: 'n1', event_ids: ['e1'], user_id: 'ada', conversation_id: 'chat', agent: 'main', subscriber: 'tool_failure', state, at: '', ...more,
});
const batch = (events: ListedEvent[], fates: Fate[] = [], skipped = 0) => ({ events, fates, skipped });

describe('live rows', () => {
  test('arrive at the top, newest first, once each, and at most 500 stay', () => {
    const many = Array.from({ length: ROWS_MAX + 20 }, (_, at) => event(`e${String(at)}`));
    const live = apply(apply(EMPTY_LIVE, batch(many)), batch([event('last'), event('e519')]));
    expect(live.rows).toHaveLength(ROWS_MAX);
    expect(live.rows.slice(0, 2).map((row) => row.event.id)).toEqual(['last', 'e519']);
  });

  test('wait while it is paused, and are counted', () => {
    const paused = apply(pause(apply(EMPTY_LIVE, batch([event('e1')]))), batch([event('e2'), event('e3')]));
    expect([paused.rows.length, paused.waitingCount]).toEqual([1, 2]);
    const resumed = resume(paused);
    expect(resumed.rows.map((row) => row.event.id)).toEqual(['e3', 'e2', 'e1']);
    expect(resumed.waitingCount).toBe(0);
  });

  test('change in place by what happens later: held, then injected', () => {
    const held = apply(EMPTY_LIVE, batch([event('e1'), event('e2', { verdicts: [verdict('held', { notification_id: 'n2' })] })]));
    expect(held.rows.map((row) => row.outcome.text)).toEqual(['held', 'held']);
    const told = apply(held, batch([], [fate('pending', { point: 'after_tool' }), fate('injected', { call_id: 'call_1' })]));
    expect(told.rows.map((row) => row.outcome.text)).toEqual(['held', 'injected · call_1']);
    expect(told.rows[0]).toBe(held.rows[0]);
  });

  test('of a person are found by the notification: in the inbox, pressed, sent, and a waiting delivery changes nothing', () => {
    const person = (state: string, more: Partial<Fate> = {}): Fate => fate(state, { event_ids: [], ...more });
    const text = (fates: Fate[]): string | undefined => apply(apply(EMPTY_LIVE, batch([event('e1')])), batch([], fates)).rows[0]?.outcome.text;
    expect(text([person('created')])).toBe('in the inbox');
    expect(text([person('created'), person('waiting', { channel: 'email' })])).toBe('in the inbox');
    expect(text([person('created'), person('sent', { channel: 'email' })])).toBe('sent by email');
    expect(text([person('pressed')])).toBe('pressed');
    expect(text([person('created', { notification_id: 'another' })])).toBe('held');
  });

  test('that were stored before say so, until more is known', () => {
    const stored = addStored(apply(EMPTY_LIVE, batch([event('e2')])), [event('e2'), event('e1'), event('e0', { verdicts: [verdict('filtered')] })]);
    expect(stored.rows.map((row) => [row.event.id, row.outcome.text])).toEqual([['e2', 'held'], ['e1', 'was held'], ['e0', 'because']]);
    const known = apply(stored, batch([], [fate('injected')]));
    expect(known.rows.map((row) => row.outcome.text)).toEqual(['held', 'injected', 'because']);
    expect(apply(known, batch([], [fate('injected')])).rows[1]?.outcome).toBe(known.rows[1]?.outcome);
  });

  test('that came while the connection was lost are put in their place; what became of those that waited is not known', () => {
    const before = doubt(apply(EMPTY_LIVE, batch([event('e1'), event('e2', { verdicts: [verdict('filtered')] })])));
    const live = addMissed(apply(before, batch([event('e6')])), [event('e5'), event('e4'), event('e2')], null);
    expect(live.rows.map((row) => [row.event.id, row.outcome.text])).toEqual([
      ['e6', 'held'], ['e5', 'was held'], ['e4', 'was held'], ['e2', 'because'], ['e1', 'was held'],
    ]);
    const paused = addMissed(pause(before), [event('e5'), event('e4')], { from: 'a', to: 'b' });
    expect([paused.rows.length, paused.waitingCount, paused.gap]).toEqual([2, 2, { from: 'a', to: 'b' }]);
    expect(resume(paused).rows.map((row) => row.event.id)).toEqual(['e5', 'e4', 'e2', 'e1']);
  });

  test('that the hub left out are counted', () => {
    expect(apply(apply(EMPTY_LIVE, batch([], [], 7)), batch([], [], 3)).skipped).toBe(10);
  });

  test('are filtered by words and by outcome', () => {
    const live = apply(EMPTY_LIVE, batch([event('e1'), event('e2', { type: 'user.message', source: 'user', verdicts: [verdict('filtered')] })]));
    const ids = (text: string, group: 'told' | 'held' | 'not' | null): string[] => filtered(live.rows, { text, group }).map((row) => row.event.id);
    expect(ids('', null)).toEqual(['e2', 'e1']);
    expect(ids('FAILURE chat', null)).toEqual(['e1']);
    expect(ids('', 'not')).toEqual(['e2']);
    expect(ids('e1 user', null)).toEqual([]);
  });
});

describe('what was missed', () => {
  const stored = Array.from({ length: 900 }, (_, at) => event(`e${String(at + 100)}`, { accepted_at: `at ${String(at + 100)}` })).reverse();
  const api = (asked: unknown[] = []) => ({
    list: (_: string, query: Record<string, unknown> = {}) => {
      asked.push(query);
      const start = Number(query.cursor ?? 0);
      const known = stored.filter(({ accepted_at: at }) => at >= String(query.since));
      const next = start + 100 < known.length ? String(start + 100) : null;
      return Promise.resolve({ items: known.slice(start, start + 100) as never[], next_cursor: next });
    },
  });

  test('is loaded page by page, from the newest to the last one that is known', async () => {
    const asked: unknown[] = [];
    const { events, gap } = await loadMissed(api(asked), event('e850', { accepted_at: 'at 850' }));
    expect([events.length, events[0]?.id, events.at(-1)?.id, gap]).toEqual([149, 'e999', 'e851', null]);
    expect(asked).toEqual([{ since: 'at 850', limit: 100, cursor: null }, { since: 'at 850', limit: 100, cursor: '100' }]);
  });

  test('is bounded, and what is not loaded is named', async () => {
    const { events, gap } = await loadMissed(api(), event('e120', { accepted_at: 'at 120' }));
    expect([events.length, gap]).toEqual([ROWS_MAX, { from: 'at 120', to: 'at 500' }]);
  });
});

test('the outcome of an event is that of its most telling verdict', () => {
  const verdicts = [verdict('filtered', { filter: 'disabled', notification_id: null }), verdict('queued'), verdict('duplicate', { repeats: 7, notification_id: null })];
  expect(outcomeOf({ verdicts }, new Map())).toEqual({ group: 'held', look: 'waits', text: 'waits' });
  expect(outcomeOf({ verdicts: verdicts.slice(2) }, new Map()).text).toBe('duplicate ×7');
  expect(outcomeOf({ verdicts: [verdict('duplicate', { repeats: 1 })] }, new Map()).text).toBe('duplicate');
  expect(outcomeOf({ verdicts: verdicts.slice(0, 1) }, new Map()).text).toBe('switched off');
  expect(outcomeOf({ verdicts }, new Map([['n1', fate('expired', { reason: 'too old' })]])).text).toBe('too old');
  expect(outcomeOf({ verdicts: [] }, new Map()).text).toBe('no subscriber');
});

test('a trace is a path with times and reasons, and the text exactly as it was read', () => {
  const trace: Trace = {
    ...event('e1', { verdicts: [verdict('held', { reason: 'held in a batch until 2026-01-03T15:30:02.000Z at the latest' })] }),
    progress: [], superseded: [], told: [],
    notifications: [{
      id: 'n1', subscriber: 'tool_failure', conversation_id: 'chat', agent: 'main', priority: 'high', inject_at: 'after_tool', state: 'injected',
      states: [], reason: null, content: 'tool_fail: <b>vault</b>', call_id: 'call_1', created_at: '2026-01-03T15:30:00.3Z', ended_at: '2026-01-03T15:30:01.4Z',
    }],
    injections: [{ conversation_id: 'chat', agent: 'main', call_id: 'call_1', point: 'after_tool', at: '2026-01-03T15:30:01.4Z', unseen: false }],
  };
  expect(stepsOf(trace).map(({ title, by, time, text }) => [title, by, time, text])).toEqual([
    ['Accepted', null, '+0 ms', null],
    ['Held', 'tool_failure', '+0 ms', null],
    ['Waits for after_tool', 'tool_failure', '+300 ms', null],
    ['Injected at after_tool, call_1', 'tool_failure', '+1.4 s', 'tool_fail: <b>vault</b>'],
  ]);
  expect(fatesOf(trace)).toMatchObject([{ notification_id: 'n1', event_ids: ['e1'], state: 'injected', call_id: 'call_1' }]);
  expect(stepsOf(trace)[0]?.reason).toBe('15 subscribers asked, 1 listens');
  expect(stepsOf(trace)[1]?.reason).toMatch(/^held in a batch until \d\d:\d\d:02\.000 at the latest$/);
});
