import { describe, expect, test } from 'vitest';
import {
  type Deck, EMPTY_DECK, FADE_MS, KEPT_MAX, SENT_MS, add, busy, done, find, hideTab, hold, leave, newest, remove, stack, tick, timeLeft, wakesAt,
} from '../src/store/toasts.ts';
import { promptAction, toastItem } from './fixtures.ts';

const shown = (deck: Deck): string[] => stack(deck, 'top-right').shown.map(({ item }) => item.id);
const left = (deck: Deck, id: string, now: number): number | null => {
  const toast = find(deck, id);
  return toast && timeLeft(toast, now);
};
const deckOf = (...ids: string[]): Deck => ids.reduce((deck, id) => add(deck, toastItem(id), 0), EMPTY_DECK);

describe('a timer', () => {
  test('ends after the duration, then the toast fades and is gone', () => {
    let deck = deckOf('a');
    expect(wakesAt(deck)).toBe(5000);
    expect(tick(deck, 4999)).toBe(deck);
    deck = tick(deck, 5000);
    expect(find(deck, 'a')?.phase).toBe('leaving');
    deck = tick(deck, 5000 + FADE_MS);
    expect(deck.toasts).toEqual([]);
    expect(wakesAt(deck)).toBeNull();
  });

  test('of duration 0 never ends', () => {
    const deck = add(EMPTY_DECK, toastItem('a', { duration: 0 }), 0);
    expect(wakesAt(deck)).toBeNull();
    expect(tick(deck, 1e9)).toBe(deck);
  });

  test('pauses while the position is held, and goes on with the remaining time', () => {
    let deck = hold(deckOf('a'), 'top-right', true, 2000);
    expect(wakesAt(deck)).toBeNull();
    expect(left(deck, 'a', 60_000)).toBe(3000);
    deck = hold(deck, 'top-right', false, 60_000);
    expect(wakesAt(deck)).toBe(63_000);
  });

  test('pauses while the tab is hidden', () => {
    let deck = hideTab(deckOf('a'), true, 1000);
    expect(left(deck, 'a', 60_000)).toBe(4000);
    deck = add(deck, toastItem('b'), 60_000);
    expect(wakesAt(deck)).toBeNull();
    expect(wakesAt(hideTab(deck, false, 70_000))).toBe(74_000);
  });

  test('of another position goes on', () => {
    const deck = hold(add(deckOf('a'), toastItem('b', { position: 'bottom-right' }), 0), 'top-right', true, 1000);
    expect(wakesAt(deck)).toBe(5000);
    expect(left(deck, 'a', 4000)).toBe(4000);
  });

  test('runs only while the toast is visible', () => {
    let deck = deckOf('a', 'b', 'c', 'd');
    expect(shown(deck)).toEqual(['d', 'c', 'b']);
    expect(left(deck, 'a', 4000)).toBe(5000);
    deck = leave(deck, 'd', 4000);
    expect(left(deck, 'a', 5000)).toBe(4000);
  });

  test('stops while a request is on its way, and after it failed', () => {
    const deck = busy(deckOf('a'), 'a', 1000);
    expect(wakesAt(deck)).toBeNull();
  });

  test('of «Sent» runs also under the pointer', () => {
    const deck = done(hold(busy(deckOf('a'), 'a', 0), 'top-right', true, 0), 'a', 10);
    expect(wakesAt(deck)).toBe(10 + SENT_MS);
  });
});

describe('a stack', () => {
  test('shows three and counts the rest; holding it shows all', () => {
    const deck = deckOf('a', 'b', 'c', 'd', 'e', 'f', 'g');
    expect(stack(deck, 'top-right')).toMatchObject({ behind: 4, expanded: false });
    expect(shown(hold(deck, 'top-right', true, 0))).toEqual(['g', 'f', 'e', 'd', 'c', 'b', 'a']);
  });

  test('keeps persistent and actionable toasts in front', () => {
    let deck = add(EMPTY_DECK, toastItem('stays', { duration: 0 }), 0);
    deck = add(deck, toastItem('asks', { actions: [promptAction] }), 0);
    for (const id of ['a', 'b', 'c']) deck = add(deck, toastItem(id), 0);
    expect(shown(deck)).toEqual(['asks', 'stays', 'c']);
  });

  test('has one for each position', () => {
    const deck = add(deckOf('a'), toastItem('b', { position: 'bottom-right' }), 0);
    expect(shown(deck)).toEqual(['a']);
    expect(stack(deck, 'bottom-right').shown).toHaveLength(1);
    expect(stack(deck, 'top-center').shown).toHaveLength(0);
  });

  test('gives the place of a fading toast to the next one', () => {
    expect(shown(leave(deckOf('a', 'b', 'c', 'd'), 'd', 0))).toEqual(['d', 'c', 'b', 'a']);
  });

  test('that becomes empty is no longer held', () => {
    const deck = hold(deckOf('a'), 'top-right', true, 0);
    expect(remove(deck, 'a', 0).held).toEqual([]);
  });
});

test('a toast with the same id is updated in place', () => {
  const deck = add(deckOf('a', 'b'), toastItem('a', { message: 'New' }), 1000);
  expect(shown(deck)).toEqual(['b', 'a']);
  expect(find(deck, 'a')?.item.message).toBe('New');
  expect(left(deck, 'a', 1000)).toBe(4000);
});

test('the newest toast is the last that arrived, wherever it stands', () => {
  const deck = leave(add(deckOf('a'), toastItem('b', { position: 'bottom-right' }), 0), 'a', 0);
  expect(newest(deck)?.item.id).toBe('b');
  expect(newest(EMPTY_DECK)).toBeNull();
});

test('beyond the bound the oldest toast that would go by itself is dropped', () => {
  let deck = add(EMPTY_DECK, toastItem('stays', { duration: 0 }), 0);
  for (let at = 0; at < KEPT_MAX; at++) deck = add(deck, toastItem(`t${String(at)}`), 0);
  expect(deck.toasts).toHaveLength(KEPT_MAX);
  expect(find(deck, 'stays')).not.toBeNull();
  expect(find(deck, 't0')).toBeNull();
});
