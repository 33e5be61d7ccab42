import { expect, test } from 'vitest';
import { isHotkey } from '../src/elements/focus.ts';
import { dismisses, swiped } from '../src/elements/swipe.ts';
import { clockTime, when } from '../src/elements/when.ts';

test('a swipe goes right, or up in the top centre, and is far or fast', () => {
  expect(swiped('top-right', 50, -90)).toBe(50);
  expect(swiped('bottom-right', -50, 0)).toBe(0);
  expect(swiped('top-center', 90, -50)).toBe(50);
  expect([dismisses(45, 5000), dismisses(44, 5000), dismisses(20, 30), dismisses(9, 1)]).toEqual([true, false, true, false]);
});

test('a hotkey has exactly its modifiers', () => {
  const pressed = (key: string, change: Partial<KeyboardEvent> = {}): KeyboardEvent =>
    ({ key, code: '', altKey: false, ctrlKey: false, shiftKey: false, metaKey: false, ...change }) as KeyboardEvent;
  expect(isHotkey(pressed('F8'), 'F8')).toBe(true);
  expect(isHotkey(pressed('F8', { ctrlKey: true }), 'F8')).toBe(false);
  expect(isHotkey(pressed('†', { code: 'KeyT', altKey: true }), 'Alt+T')).toBe(true);
  expect(isHotkey(pressed('t', { code: 'KeyT' }), 'Alt+T')).toBe(false);
  expect(isHotkey(pressed('F8'), '')).toBe(false);
});

test('times are relative within a week', () => {
  const now = Date.parse('2026-01-03T15:30:00Z');
  const ago = (milliseconds: number): string => when(new Date(now - milliseconds).toISOString(), now, 'en');
  expect(ago(10_000)).toBe('now');
  expect(ago(125_000)).toBe('2 min. ago');
  expect(ago(3 * 3_600_000)).toBe('3 hr. ago');
  expect(ago(86_400_000)).toBe('yesterday');
  expect(ago(9 * 86_400_000)).toBe('Dec 25, 2025');
  expect(when('', now, 'en')).toBe('');
  expect(clockTime('2026-01-03T15:00:00Z', now, 'en')).not.toBe('');
});
