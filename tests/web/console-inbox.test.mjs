// The inbox page: keys, filters, undo, tabs in step, lost connections, hostile texts, long lists, desktop notifications.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stage, toast } from './browser.mjs';
import { openConsole, row, rows } from './console.mjs';
import { until } from './hub.mjs';

const here = stage();
const BUTTONS = [{ label: 'View Logs', action: 'prompt', prompt: 'show me the build logs' }, { label: 'Not now', action: 'dismiss' }];
const texts = (page) => rows(page).locator('.message').allTextContents();
const focused = (page) => page.evaluate(() => {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element?.dataset?.id ?? element?.tagName ?? null;
});

test('an agent’s toast, a button, and the agent’s next injection holds the prompt', async (t) => {
  const { person, page } = await openConsole(t, here);
  const id = await person.show({ title: 'Build failure', message: 'Three tests fail', severity: 'error', duration: 0, actions: BUTTONS });
  await toast(page, id).waitFor();
  await row(page, id).getByRole('button', { name: 'View Logs' }).waitFor();
  await until('the title', async () => (await page.title()) === '(1) Inbox · Bellwire');
  await toast(page, id).getByRole('button', { name: 'View Logs' }).click();
  await toast(page, id).getByText('Sent').waitFor();
  assert.match((await person.inject('call_1')).block, /pressed \\?"View Logs\\?" \(offered by butler\): show me the build logs/);
  await until('the title', async () => (await page.title()) === 'Inbox · Bellwire');
});

test('by keyboard alone: move, open, read, dismiss, undo, search, and the list of keys', async (t) => {
  const { person, page } = await openConsole(t, here);
  const ids = [];
  for (const message of ['First', 'Second', 'Third']) ids.unshift(await person.send(message));
  await until('the rows', async () => (await texts(page)).join() === 'Third,Second,First');
  await page.keyboard.press('j');
  await until('the first row', async () => (await focused(page)) === ids[0]);
  await page.keyboard.press('j');
  await until('the second row', async () => (await focused(page)) === ids[1]);
  await page.keyboard.press('k');
  await until('the first row', async () => (await focused(page)) === ids[0]);
  // Enter opens and marks as read; the row stays until the filter changes.
  await page.keyboard.press('Enter');
  await row(page, ids[0]).and(page.locator('.open.read')).waitFor();
  await row(page, ids[0]).getByRole('link', { name: 'Open the conversation' }).waitFor();
  await page.keyboard.press('r');
  await row(page, ids[0]).and(page.locator('.unread')).waitFor();
  await page.keyboard.press('e');
  await row(page, ids[0]).waitFor({ state: 'detached' });
  await until('the next row', async () => (await focused(page)) === ids[1]);
  await page.getByText('Dismissed: “Third”').waitFor();
  await page.keyboard.press('u');
  await until('the dismissed row', async () => (await texts(page)).join() === 'Third,Second,First' && (await focused(page)) === ids[0]);
  await page.keyboard.press('u');
  await row(page, ids[0]).and(page.locator('.read')).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' });
  const state = await person.call('GET', '/notifications?state=all');
  assert.deepEqual(state.items.map(({ dismissed_at: dismissed }) => dismissed), [null, null, null]);
});

test('filters and search', async (t) => {
  const { person, page } = await openConsole(t, here);
  await page.getByText('Nothing unread. When an agent needs you, it shows here.').waitFor();
  const readAll = page.getByRole('button', { name: 'Mark all as read' });
  await readAll.waitFor({ state: 'detached' });
  await person.send('The oven is hot', 'warning');
  const read = await person.send('Buy milk', 'reminder');
  await person.call('PATCH', `/notifications/${read}`, { read: true });
  const gone = await person.send('Old news');
  await person.call('DELETE', `/notifications/${gone}`);
  const choose = (name) => page.getByRole('button', { name, exact: true }).click();
  await until('unread', async () => (await texts(page)).join() === 'The oven is hot');
  await readAll.waitFor();
  await choose('All');
  await until('all', async () => (await texts(page)).join() === 'Buy milk,The oven is hot');
  await page.getByLabel('Type').selectOption('reminder');
  await until('reminders', async () => (await texts(page)).join() === 'Buy milk');
  await page.getByLabel('Type').selectOption('');
  await page.keyboard.press('Escape');
  await page.locator('h1').click();
  await page.keyboard.press('/');
  await page.keyboard.type('OVEN is');
  await until('the search', async () => (await texts(page)).join() === 'The oven is hot');
  await page.getByLabel('Search').fill('nothing like it');
  await page.getByText('Nothing has this text.').waitFor();
  await page.getByLabel('Search').fill('');
  await choose('Dismissed');
  await until('dismissed', async () => (await texts(page)).join() === 'Old news');
  await page.getByRole('button', { name: 'Restore' }).click();
  await page.getByText('Nothing was dismissed.').waitFor();
});

test('two tabs stay in step', async (t) => {
  const { person, pages: [one, two] } = await openConsole(t, here, { tabs: 2 });
  const ids = [await person.send('First'), await person.send('Second')];
  for (const page of [one, two]) await until('both', async () => (await texts(page)).join() === 'Second,First');
  await row(one, ids[0]).getByRole('button', { name: 'Dismiss' }).click();
  await row(two, ids[0]).waitFor({ state: 'detached' });
  await two.getByRole('button', { name: 'Mark all as read' }).click();
  await until('the titles', async () => (await one.title()) === 'Inbox · Bellwire' && (await two.title()) === 'Inbox · Bellwire');
});

test('a lost connection is one quiet line; after the hub is back nothing is lost or repeated', async (t) => {
  const { person, page } = await openConsole(t, here);
  const gone = await person.send('Dismissed elsewhere meanwhile');
  await person.send('Before');
  for (const text of ['Before', 'Dismissed elsewhere meanwhile']) await page.getByText(text).waitFor();
  const stream = `**/v1/users/${person.user}/stream`;
  await page.route(stream, (route) => route.abort());
  await here.hub.kill();
  const line = page.getByText('Reconnecting… what arrives meanwhile will be here.');
  await line.waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0);
  await row(page, (await rows(page).first().getAttribute('data-id'))).getByRole('button', { name: 'Mark as read' }).click();
  await page.getByText('Not sent: the hub cannot be reached.').waitFor();
  await here.hub.restart();
  await person.call('DELETE', `/notifications/${gone}`);
  await person.send('After');
  await page.unroute(stream);
  await until('both', async () => (await texts(page)).join() === 'After,Before');
  await line.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('button', { name: 'All', exact: true }).click();
  await until('each once', async () => (await texts(page)).join() === 'After,Before');
});

test('hostile texts are harmless and readable', async (t) => {
  const { person, page } = await openConsole(t, here, { options: { viewport: { width: 390, height: 800 } } });
  const hostile = ['<img src=x onerror="window.hit=1"><script>window.hit=1</script>', 'x'.repeat(500), '\u202e\u2066gnp.exe\u2069'.repeat(20), '<!--?lit$1$--> ${window.hit=1}'];
  for (const text of hostile) await person.show({ title: text.slice(0, 100), message: text, duration: 1, actions: [{ label: text.slice(0, 50), action: 'prompt', prompt: text.slice(0, 200) }] });
  await until('the rows', async () => (await rows(page).count()) === hostile.length);
  const shape = await page.locator('bellwire-inbox-page').evaluate((element) => ({
    elements: element.querySelectorAll('img, script, iframe').length,
    wide: [...element.querySelectorAll('.item, .item *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1).length,
    hit: window.hit,
  }));
  assert.deepEqual(shape, { elements: 0, wide: 0, hit: undefined });
});

test('a long list has few rows in the page, and loads the next page when its end is near', async (t) => {
  const { person, page } = await openConsole(t, here);
  for (let at = 0; at < 25; at++) await person.send(`Number ${at}`);
  await until('rows', async () => (await rows(page).count()) > 10);
  // 100,000 rows of the same list element.
  const seen = await page.evaluate(async () => {
    const list = document.querySelector('bellwire-console').shadowRoot.querySelector('bellwire-rows');
    const { row } = list.list;
    const [first] = list.list.items;
    const items = Array.from({ length: 100_000 }, (_, at) => ({ ...first, id: String(at).padStart(6, '0'), message: `Row ${at}` }));
    list.list = { items, key: ({ id }) => id, row };
    await list.updateComplete;
    const counts = [list.querySelectorAll('.item').length];
    await list.reveal('073219');
    counts.push(list.querySelectorAll('.item').length);
    const middle = list.querySelector('[data-key="073219"]')?.textContent.includes('Row 73219');
    await list.reveal('099999');
    return { counts, middle, last: list.querySelector('[data-key="099999"]')?.textContent.includes('Row 99999') };
  });
  assert.ok(seen.counts.every((count) => count > 0 && count < 80), seen.counts.join());
  assert.deepEqual([seen.middle, seen.last], [true, true]);
});

test('pages of a list are loaded one after the other, by the hub’s cursors', async (t) => {
  const { person, page } = await openConsole(t, here);
  const asked = [];
  const item = (at) => ({ id: `01a1ee2e-0000-7000-8000-${String(999_999 - at).padStart(12, '0')}`, kind: 'message', type: 'info', origin: 'butler', source: null, conversation_id: null, title: null, message: `Row ${at}`, duration: null, position: null, actions: [], correlation_id: null, created_at: '2026-01-03T15:30:00Z', read_at: null, dismissed_at: null, deliveries: [] });
  await page.route(`**/v1/users/${person.user}/notifications?*`, async (route) => {
    const { searchParams } = new URL(route.request().url());
    const start = Number(searchParams.get('cursor') ?? 0);
    // What is unread is loaded once more when the stream opens, which may be now.
    if (searchParams.get('state') !== 'unread') asked.push(start);
    const search = searchParams.get('search') ?? '';
    const items = Array.from({ length: 100 }, (_, at) => item(start + at)).filter(({ message }) => message.toLowerCase().includes(search));
    await route.fulfill({ json: { items, next_cursor: start + 100 < 1000 ? String(start + 100) : null } });
  });
  await page.getByRole('button', { name: 'All', exact: true }).click();
  await page.getByText('Row 0', { exact: true }).waitFor();
  const list = page.locator('bellwire-inbox-page bellwire-rows');
  await until('all pages', async () => {
    await list.evaluate((element) => { element.scrollTop = element.scrollHeight; });
    return asked.includes(900);
  });
  await until('the last row', async () => {
    await list.evaluate((element) => { element.scrollTop = element.scrollHeight; });
    return (await texts(page)).includes('Row 999');
  });
  assert.deepEqual(asked, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
  // A search finds what is far back, also after a reload.
  await page.reload();
  await page.getByRole('button', { name: 'All', exact: true }).click();
  await page.getByLabel('Search').fill('row 877');
  await until('the find', async () => (await texts(page)).join() === 'Row 877');
  await page.getByLabel('Search').fill('');
  await page.getByText('Row 0', { exact: true }).waitFor();
  assert.ok((await rows(page).count()) < 80);
});

/** Records what is shown on the desktop instead of showing it. */
const recordDesktop = (context) => context.addInitScript(() => {
  window.desktop = [];
  if (location.protocol === 'http:') localStorage.setItem('bellwire:desktop', 'on');
  window.Notification = class extends EventTarget {
    static permission = 'granted';
    static requestPermission = async () => 'granted';
    constructor(title, { body, tag }) {
      super();
      window.desktop.push({ title, body, tag });
    }
  };
});
const hideTab = (page) => page.evaluate(() => {
  Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => 'hidden' });
  document.dispatchEvent(new Event('visibilitychange'));
});
const showTab = (page) => page.evaluate(() => {
  delete document.visibilityState;
  document.dispatchEvent(new Event('visibilitychange'));
});

test('desktop notifications: by the leading tab only, when no tab is visible, never in quiet hours', async (t) => {
  const { person, context, pages: [first] } = await openConsole(t, here);
  await recordDesktop(context);
  await first.reload();
  const second = await context.newPage();
  await second.goto(`${here.hub.url}/inbox`);
  const pages = [first, second];
  for (const page of pages) await page.getByRole('navigation', { name: 'Main' }).waitFor();
  const shown = async () => (await Promise.all(pages.map((page) => page.evaluate(() => window.desktop)))).flat();
  const arrives = async (message, type) => {
    const id = await person.send(message, type);
    for (const page of pages) await page.locator(`.item[data-id="${id}"]`).waitFor({ state: 'attached' });
    return id;
  };
  await hideTab(first);
  await arrives('While a tab is visible', 'warning');
  await hideTab(second);
  const warning = await arrives('While none is', 'warning');
  await until('the notification', async () => (await shown()).length > 0);
  await arrives('Only for the inbox', 'info');
  const reminder = await arrives('A reminder', 'reminder');
  await until('both', async () => (await shown()).length >= 2);
  assert.deepEqual(await shown(), [{ title: 'While none is', body: '', tag: warning }, { title: 'A reminder', body: '', tag: reminder }]);
  await person.call('PATCH', '/settings', { quiet_hours: { start: '00:00', end: '23:59', timezone: 'UTC' } });
  await arrives('In quiet hours', 'warning');
  await person.call('PATCH', '/settings', { quiet_hours: null });
  const last = await arrives('Afterwards', 'warning');
  await until('the last', async () => (await shown()).some(({ tag }) => tag === last));
  assert.equal((await shown()).length, 3);
  for (const page of pages) await showTab(page);
});
