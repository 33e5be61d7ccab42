import { describe, expect, test } from 'vitest';
import { Heights } from '../src/console/list/heights.ts';
import { PagedList } from '../src/console/list/paged.ts';
import type { Page } from '../src/console/wire.ts';

const keys = (count: number): string[] => Array.from({ length: count }, (_, at) => String(at));

describe('the heights of rows', () => {
  test('are estimated until they are measured', () => {
    const heights = new Heights(10);
    heights.setKeys(keys(5));
    expect([heights.total, heights.offset(2)]).toEqual([50, 20]);
    expect(heights.measure(1, 30)).toBe(true);
    expect(heights.measure(1, 30)).toBe(false);
    expect([heights.total, heights.offset(1), heights.offset(2)]).toEqual([70, 10, 40]);
  });

  test('stay with their rows when others arrive before them', () => {
    const heights = new Heights(10);
    heights.setKeys(['b']);
    heights.measure(0, 25);
    heights.setKeys(['a', 'b']);
    expect([heights.offset(1), heights.total, heights.indexOf('b'), heights.indexOf('c')]).toEqual([10, 35, 1, null]);
    expect(heights.measure(2, 10)).toBe(false);
  });

  test('tell which rows are visible, among 100,000, without adding them all up', () => {
    const heights = new Heights(35);
    heights.setKeys(keys(100_000));
    for (let at = 0; at < 100_000; at += 7) heights.measure(at, 35 + (at % 50));
    const top = heights.offset(73_219) + 3;
    const { first, end, before, after } = heights.visible(top, 700, 0);
    expect(first).toBe(73_219);
    expect(end).toBeGreaterThan(first + 5);
    expect(end).toBeLessThan(first + 25);
    expect(before).toBe(heights.offset(first));
    expect(before + after).toBeCloseTo(heights.total - (heights.offset(end) - heights.offset(first)), 5);
  });

  test('an empty list, its end, and what is beyond', () => {
    const heights = new Heights(10);
    expect(heights.visible(0, 100, 50)).toEqual({ first: 0, end: 0, before: 0, after: 0 });
    heights.setKeys(keys(3));
    expect(heights.visible(1000, 100, 0)).toMatchObject({ end: 3, after: 0 });
  });
});

describe('a list by pages', () => {
  const pages: Record<string, Page<string>> = {
    first: { items: ['a', 'b'], next_cursor: 'second' },
    second: { items: ['b', 'c'], next_cursor: null },
  };
  const list = (asked: (string | null)[] = []): PagedList<string> => new PagedList((cursor) => {
    asked.push(cursor);
    const page = pages[cursor ?? 'first'];
    return page ? Promise.resolve(page) : Promise.reject(new Error('broken'));
  }, (item) => item);

  test('loads the next page until there is none, and shows a row once', async () => {
    const asked: (string | null)[] = [];
    const letters = list(asked);
    await letters.more();
    await letters.more();
    await letters.more();
    expect(letters.state.get()).toMatchObject({ items: ['a', 'b', 'c'], cursor: null, loaded: true });
    expect(asked).toEqual([null, 'second']);
  });

  test('a page that comes after a reload is ignored', async () => {
    const answers: ((page: Page<string>) => void)[] = [];
    const slow = new PagedList<string>(() => new Promise((resolve) => answers.push(resolve)), (item) => item);
    const [old, fresh] = [slow.more(), slow.reload()];
    answers[1]?.({ items: ['new'], next_cursor: null });
    await fresh;
    answers[0]?.({ items: ['old'], next_cursor: 'more' });
    await old;
    expect(slow.state.get()).toMatchObject({ items: ['new'], cursor: null });
  });

  test('keeps what it has where a page fails, and says why', async () => {
    const failing = new PagedList<string>(() => Promise.reject(new Error('broken')), (item) => item);
    await failing.more();
    expect(failing.state.get()).toMatchObject({ items: [], loaded: false, problem: 'The list could not be loaded: broken' });
  });
});
