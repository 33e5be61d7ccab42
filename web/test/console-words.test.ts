import { describe, expect, test } from 'vitest';
import { HubError } from '../src/client/http.ts';
import { explain, search } from '../src/console/api.ts';
import { describe as describePending } from '../src/console/conversations/pending.ts';
import { about, canCancel, canRetry, retryQuestion, route } from '../src/console/deliveries/words.ts';
import { later, length, until, withTimes } from '../src/console/format.ts';
import { deliveryText } from '../src/console/inbox/deliveries-line.ts';
import { curlOf } from '../src/console/playground/curl.ts';
import { callOf, eventSubjects } from '../src/console/playground/request.ts';
import { fieldsOf } from '../src/console/playground/schema.ts';
import { browserName } from '../src/console/session.ts';
import { isWorthIt, mayInterrupt } from '../src/console/shell/desktop.ts';
import { describe as describeQuiet, isQuiet, pieces, timeOf } from '../src/console/settings/quiet-hours.ts';
import { samplesFor } from '../src/console/subscribers/samples.ts';
import { sentence } from '../src/console/subscribers/sentence.ts';
import type { Delivery, EventType, Pending, Settings, Subscriber } from '../src/console/wire.ts';
import { toastItem } from './fixtures.ts';

const subscriber: Subscriber = {
  id: 'budget_warning', name: 'Budget Warnings', description: '', version: '1.0.0', types: ['budget.token.warning', 'budget.iteration.warning'],
  severity_filter: 'warning', priority: 'high', inject_at: 'turn_start', window_ms: 1000, max_size: 3, dedupe_window_ms: 10_000, activation: 'wake',
  audience: 'agent', core: true, enabled: true,
};

test('a delivery of a notification in words', () => {
  const text = (state: string, reason: string | null, channel = 'email'): string => deliveryText({ channel, state, reason, at: '' }, '07:00');
  expect(text('sent', 'quiet hours')).toBe('mailed 07:00 after quiet hours');
  expect(text('waiting', 'quiet hours')).toBe('mail waits until 07:00 (quiet hours)');
  expect(text('failed', '550 no such user')).toBe('mail failed 07:00 (550 no such user)');
  expect(text('sent', null, 'telegram')).toBe('sent by Telegram 07:00');
  expect(text('sent', null, 'file')).toBe('sent by file 07:00');
});

test('an error says what failed, why, and what to do', () => {
  expect(explain('Not saved', new HubError(0, 'x'))).toBe('Not saved: the hub cannot be reached. Try again.');
  expect(explain('Not saved', new HubError(422, 'is a core subscriber', { code: 'invalid', message: '', field: 'disabled_subscribers', hint: 'leave it out' })))
    .toBe('Not saved: disabled_subscribers is a core subscriber. Leave it out');
  expect(search({ a: 1, b: null, c: '', d: 'x y' })).toBe('?a=1&d=x+y');
});

describe('quiet hours', () => {
  const quiet = { start: '22:00', end: '07:00', timezone: 'Europe/Berlin' };
  const at = (time: string): number => Date.parse(`2026-01-03T${time}:00+01:00`);

  test('go over midnight, in the time zone of the person', () => {
    expect(['21:59', '22:00', '00:30', '06:59', '07:00'].map((time) => isQuiet(quiet, at(time)))).toEqual([false, true, true, true, false]);
    expect(pieces(1320, 420)).toEqual([[1320, 1440], [0, 420]]);
    expect([timeOf(-15), timeOf(1440)]).toEqual(['23:45', '00:00']);
  });

  test('say when mail resumes', () => {
    expect(describeQuiet(quiet, at('00:40'))).toBe('Quiet now. Mail resumes at 07:00, in 6 h 20 min.');
    expect(describeQuiet(quiet, at('20:00'))).toBe('Quiet from 22:00, in 2 h, until 07:00.');
  });

  test('keep the desktop silent; so do mutes and switched off toasts', () => {
    const settings = { muted_origins: ['spammer'], toasts: { enabled: true }, quiet_hours: quiet } as unknown as Settings;
    expect(mayInterrupt(toastItem('1'), settings, at('12:00'))).toBe(true);
    expect(mayInterrupt(toastItem('1'), settings, at('23:00'))).toBe(false);
    expect(mayInterrupt(toastItem('1', { origin: 'spammer' }), settings, at('12:00'))).toBe(false);
    expect(mayInterrupt(toastItem('1'), { ...settings, toasts: { enabled: false } }, at('12:00'))).toBe(false);
    expect([toastItem('1'), toastItem('1', { kind: 'message' }), toastItem('1', { kind: 'message', type: 'reminder' })].map(isWorthIt)).toEqual([true, false, true]);
  });
});

test('a subscriber in one sentence', () => {
  expect(sentence(subscriber)).toBe('Tells the agent about budget.token.warning and budget.iteration.warning of severity warning or higher when its next turn begins, up to 3 together within 1 s. Repeats within 10 s only count. It wakes an idle agent.');
  expect(sentence({ ...subscriber, types: ['a.b'], severity_filter: 'debug', audience: 'user', inject_at: null, window_ms: 0, dedupe_window_ms: 0, activation: 'passive' })).toBe('Tells the person about a.b.');
});

const known: EventType = {
  type: 'budget.token.warning', meaning: 'much of a budget is used', source: 'budget', severity: 'warning', subscribers: ['budget_warning'],
  fields: [{ name: 'percent', meaning: 'how much', example: 84, shown: 'yes' }],
};

test('a subscriber is tried with events of the types it listens for', () => {
  const own = { id: 'budget_warning', types: ['budget.*'], severity_filter: 'warning' } as const;
  expect(samplesFor({ ...own, types: [...own.types] }, [known])).toMatchObject([{ type: 'budget.token.warning', severity: 'warning', payload: { percent: 84 } }]);
  expect(samplesFor({ id: 'mine', types: ['my.*.thing'], severity_filter: 'error' }, [known])).toMatchObject([{ type: 'my.example.thing', severity: 'error' }]);
});

test('what waits, in words', () => {
  const pending: Pending = {
    id: 'n1', subscriber: 'budget_warning', source: 'budget_monitor', priority: 'high', inject_at: 'turn_start', events: 1, repeats: 0,
    since: new Date(new Date().setHours(15, 30, 1, 0)).toISOString(), expires_at: '',
  };
  expect(describePending('main', pending)).toBe('budget_monitor · since 15:30:01');
  expect(describePending('scout', { ...pending, source: null, events: 2, repeats: 3 })).toBe('for scout · several sources · 2 events, 3 repeats · since 15:30:01');
});

test('what a delivery is about, and how it goes', () => {
  const delivery = { title: 'Buy milk', notification_id: 'n1', origin: 'butler', channel: 'email', target: 'ada@example.org', user_id: 'ada' } as Delivery;
  expect([about(delivery), route(delivery)]).toEqual(['Buy milk', 'butler · email to ada@example.org · ada']);
  expect(about({ ...delivery, title: null })).toBe('A notification that was deleted');
  expect(about({ ...delivery, title: null, notification_id: null })).toBe('A code that confirms an address');
  expect(route({ ...delivery, origin: null })).toBe('email to ada@example.org · ada');
});

test('a delivery can be retried when it ended unsent, and cancelled while it waits', () => {
  const delivery = (state: Delivery['state']): Delivery => ({ state, channel: 'email', target: 'ada@example.org' }) as Delivery;
  const states = ['waiting', 'claimed', 'started', 'sent', 'failed', 'unknown', 'skipped', 'cancelled'] as const;
  expect(states.filter((state) => canRetry(delivery(state)))).toEqual(['failed', 'unknown', 'skipped', 'cancelled']);
  expect(states.filter((state) => canCancel(delivery(state)))).toEqual(['waiting']);
  expect(retryQuestion(delivery('unknown'))).toBe('Send it to ada@example.org by email again, now? It may have arrived already; then it arrives twice.');
});

describe('the playground', () => {
  test('makes fields of a schema', () => {
    const schema = { required: ['message'], properties: {
      type: { anyOf: [{ enum: ['info', 'warning'] }, { type: 'null' }], description: 'How it looks.' }, message: { type: 'string', maxLength: 500 }, in_minutes: { type: ['integer', 'null'], minimum: 1 },
      actions: { type: 'array', maxItems: 3, items: { properties: { label: { type: 'string' } } } }, payload: { type: 'object' },
    } };
    expect(fieldsOf(schema).map(({ name, kind, required }) => [name, kind, required])).toEqual([
      ['message', 'text', true], ['type', 'choice', false], ['in_minutes', 'number', false], ['actions', 'list', false], ['payload', 'json', false],
    ]);
    expect(fieldsOf(null)).toEqual([]);
  });

  test('makes the request, and a command that a shell takes literally', () => {
    const [subject] = eventSubjects([known]);
    if (!subject) throw new Error('no event');
    const { path, body } = callOf(subject, { severity: 'info', note: "it's" }, { user: 'ada', conversation: '' });
    expect(body).toEqual({ type: subject.name, source: 'playground', severity: 'info', payload: { note: "it's" }, user_id: 'ada' });
    expect(curlOf('http://hub', path, { text: "it's $HOME `id`" })).toBe(
      `curl -sS 'http://hub/v1/events' \\\n  -H "Authorization: Bearer $BELLWIRE_TOKEN" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"text":"it'\\''s $HOME \`id\`"}'`);
  });
});

test('times as people read them', () => {
  expect([length(300), length(1400), length(90_000), length(7_200_000)]).toEqual(['300 ms', '1.4 s', '2 min', '2 h']);
  expect(later('2026-01-03T15:30:00Z', '2026-01-03T15:30:01.4Z')).toBe('+1.4 s');
  expect(until('2026-01-03T15:30:00Z', Date.parse('2026-01-03T09:30:00Z'))).toBe('in 6 h');
  expect(withTimes('until 2026-99-99T99:99:99Z')).toBe('until 2026-99-99T99:99:99Z');
});

test('a browser in words', () => {
  expect(browserName('Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0')).toBe('Firefox on Linux');
  expect(browserName('Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1')).toBe('Safari on iPhone');
  expect(browserName('curl')).toBe('Browser');
});
