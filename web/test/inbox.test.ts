import { describe, expect, test } from 'vitest';
import { EMPTY_INBOX, ITEMS_MAX, type Inbox, addPage, choose, put, view } from '../src/store/inbox.ts';
import { toastItem } from './fixtures.ts';

const ids = (inbox: Inbox): string[] => view(inbox).map(({ id }) => id);
const none = new Set<string>();
const item = (id: string) => toastItem(id);

describe('a view', () => {
  test('is empty until a page is loaded, then newest first', () => {
    expect(ids(put(EMPTY_INBOX, [item('5')]))).toEqual([]);
    expect(ids(addPage(put(EMPTY_INBOX, [item('5')]), [item('4'), item('3')], null, none))).toEqual(['5', '4', '3']);
  });

  test('leaves out what is older than its last page', () => {
    const inbox = addPage(put(EMPTY_INBOX, [item('1')]), [item('5'), item('4')], '4', none);
    expect(ids(inbox)).toEqual(['5', '4']);
    expect(ids(addPage(inbox, [item('3'), item('1')], null, none))).toEqual(['5', '4', '3', '1']);
  });

  test('shows what matches the filter', () => {
    const items = [toastItem('4'), toastItem('3', { read_at: 'now' }), toastItem('2', { read_at: 'now', dismissed_at: 'now' }), toastItem('1', { type: 'error' })];
    const inbox = addPage(EMPTY_INBOX, items, null, none);
    const filtered = (state: 'unread' | 'all' | 'dismissed', type: 'error' | null): string[] =>
      ids({ ...choose(inbox, { state, type }), floor: '' });
    expect(filtered('unread', null)).toEqual(['4', '1']);
    expect(filtered('all', null)).toEqual(['4', '3', '1']);
    expect(filtered('dismissed', null)).toEqual(['2']);
    expect(filtered('all', 'error')).toEqual(['1']);
  });
});

test('a search finds a text in one field, in any case', () => {
  const items = [toastItem('3', { title: 'The Oven' }), toastItem('2', { message: 'Buy milk', origin: 'oven' }), toastItem('1', { message: 'the', origin: 'ov' })];
  const found = (search: string): string[] => ids({ ...choose(addPage(EMPTY_INBOX, items, null, none), { state: 'all', type: null, search }), floor: '' });
  expect(found('oVeN')).toEqual(['3', '2']);
  expect(found('')).toEqual(['3', '2', '1']);
});

test('an item that changed while its page was loaded keeps the change', () => {
  const read = toastItem('5', { read_at: 'now' });
  const inbox = addPage(put(EMPTY_INBOX, [read]), [item('5'), item('4')], null, new Set(['5']));
  expect(ids(inbox)).toEqual(['4']);
});

test('an empty page with a cursor keeps the place to go on', () => {
  const inbox = addPage(EMPTY_INBOX, [], '9', none);
  expect(inbox).toMatchObject({ cursor: '9', floor: '' });
});

test('beyond the bound the oldest items are forgotten, and loaded again by paging', () => {
  const id = (at: number): string => String(at).padStart(6, '0');
  const items = Array.from({ length: ITEMS_MAX + 10 }, (_, at) => item(id(at))).reverse();
  const inbox = addPage(EMPTY_INBOX, items, null, none);
  expect(inbox.items.size).toBe(ITEMS_MAX);
  expect(inbox).toMatchObject({ floor: id(10), cursor: id(10) });
});
