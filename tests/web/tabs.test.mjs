// Several tabs and devices stay in step, and nothing is lost or repeated when a connection ends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newContext, newPerson, openPage, stage, toast, toasts } from './browser.mjs';
import { until } from './hub.mjs';

const here = stage();

/** Tabs of one browser, and the streams that they have open. */
async function open(tabs = 2, clock = false) {
  const person = await newPerson(here);
  const context = await newContext(here);
  if (clock) await context.clock.install();
  const streams = new Set();
  const urls = [];
  context.on('request', (request) => {
    urls.push(request.url());
    if (request.url().endsWith('/stream') && request.method() === 'GET') streams.add(request);
  });
  for (const event of ['requestfailed', 'requestfinished']) context.on(event, (request) => streams.delete(request));
  const pages = [];
  for (let at = 0; at < tabs; at++) pages.push(await openPage(here, context, person));
  const end = async () => {
    assert.deepEqual(context.faults, []);
    await context.close();
  };
  return { person, context, pages, streams, urls, end };
}

const shown = async (page) => (await toasts(page).locator('.message').allTextContents()).sort();
const unread = async (page) => ((await page.locator('bellwire-inbox .badge').count()) ? page.locator('bellwire-inbox .badge').textContent() : '0');
/** Everything that the page ever showed as a toast, by counting what was added. */
const recordToasts = (page) => page.evaluate(() => {
  window.appeared = [];
  const root = document.querySelector('bellwire-toaster').shadowRoot.querySelector('bellwire-toast-layer').shadowRoot;
  new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) window.appeared.push(...(node.querySelectorAll?.('.toast .message') ?? []));
    }
  }).observe(root, { subtree: true, childList: true });
});
const appeared = (page) => page.evaluate(() => window.appeared.map(({ textContent }) => textContent));

test('two tabs share one stream, show the same, and what is done in one is done in the other', async () => {
  const { person, pages, streams, urls, end } = await open();
  const [one, two] = pages;
  assert.equal(streams.size, 1);
  const ids = [await person.show({ message: 'First', duration: 0 }), await person.show({ message: 'Second', duration: 0, actions: [{ label: 'Go', action: 'prompt', prompt: 'go on' }] })];
  for (const page of pages) await until('both toasts', async () => (await shown(page)).join() === 'First,Second');
  await toast(two, ids[0]).getByRole('button', { name: 'Dismiss' }).click();
  await toast(one, ids[0]).waitFor({ state: 'detached' });
  await toast(one, ids[1]).getByRole('button', { name: 'Go' }).click();
  await toast(two, ids[1]).waitFor({ state: 'detached' });
  for (const page of pages) await until('nothing unread', async () => (await unread(page)) === '0');
  assert.equal(streams.size, 1);
  assert.ok(urls.length > 0 && urls.every((url) => !url.includes(person.token)), 'the token is in no address');
  await end();
});

test('two devices stay in step', async () => {
  const { person, pages, end } = await open(1);
  const phone = await newContext(here, { viewport: { width: 390, height: 800 } });
  const other = await openPage(here, phone, person);
  const id = await person.show({ message: 'Everywhere', duration: 0 });
  for (const page of [pages[0], other]) await toast(page, id).waitFor();
  await toast(other, id).getByRole('button', { name: 'Dismiss' }).click();
  await toast(pages[0], id).waitFor({ state: 'detached' });
  await until('nothing unread', async () => (await unread(pages[0])) === '0');
  await phone.close();
  await end();
});

test('a toast that was shown for its time in one tab is hidden in the others', async () => {
  const { person, pages, end } = await open();
  // The second tab is in the background: its timers stand still.
  await pages[1].evaluate(() => {
    Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await recordToasts(pages[1]);
  const id = await person.show({ message: 'Short', duration: 1000 });
  await toast(pages[0], id).waitFor();
  await toast(pages[0], id).waitFor({ state: 'detached' });
  await toast(pages[1], id).waitFor({ state: 'detached' });
  assert.deepEqual(await appeared(pages[1]), ['Short']);
  await end();
});

test('when the tab that reads the stream closes, another one goes on without a gap', async () => {
  const { person, pages, streams, end } = await open();
  await person.show({ message: 'Before', duration: 0 });
  await toasts(pages[1]).first().waitFor();
  await recordToasts(pages[1]);
  await Promise.all([pages[0].close(), person.show({ message: 'Meanwhile', duration: 20_000 })]);
  // A tab that closes does not report how its requests ended.
  await until('the stream of the other tab', () => [...streams].some((request) => !request.frame().page().isClosed()));
  await person.show({ message: 'After', duration: 20_000 });
  await until('all toasts', async () => (await shown(pages[1])).join() === 'After,Before,Meanwhile');
  assert.deepEqual((await appeared(pages[1])).sort(), ['After', 'Meanwhile']);
  assert.equal([...streams].filter((request) => !request.frame().page().isClosed()).length, 1);
  await end();
});

test('a tab that is opened later has the persistent toasts and the count', async () => {
  const { person, context, pages, streams, end } = await open(1);
  await person.show({ message: 'Stays', duration: 0 });
  await toasts(pages[0]).first().waitFor();
  const later = await openPage(here, context, person);
  await until('the toast', async () => (await shown(later)).join() === 'Stays');
  assert.equal(streams.size, 1);
  await end();
});

test('after the hub was killed and started again nothing is lost and nothing repeated', async () => {
  const { person, pages, end } = await open();
  await person.show({ message: 'Before', duration: 0, actions: [{ label: 'Go', action: 'prompt', prompt: 'go on' }] });
  for (const page of pages) await until('the toast', async () => (await shown(page)).join() === 'Before');
  for (const page of pages) await recordToasts(page);
  await here.hub.kill();
  const bell = pages[0].locator('bellwire-inbox .bell');
  await bell.click();
  await pages[0].getByText('Reconnecting… what arrives meanwhile will be here.').waitFor();
  await bell.click();
  await toasts(pages[0]).first().getByRole('button', { name: 'Go' }).click();
  await pages[0].locator('.toast').getByText('Not sent: the hub cannot be reached.').waitFor();
  await here.hub.restart();
  await person.show({ message: 'After', duration: 20_000 });
  await person.show({ message: 'Expired', duration: 1 });
  for (const page of pages) await until('both toasts', async () => (await shown(page)).join() === 'After,Before');
  await pages[0].locator('.toast').getByRole('button', { name: 'Retry' }).click();
  await until('the prompt', async () => (await person.inject(`call_${Math.random()}`)).block.includes('go on'));
  for (const page of pages) await until('the answer everywhere', async () => (await shown(page)).join() === 'After');
  for (const page of pages) {
    const seen = await appeared(page);
    assert.equal(seen.filter((text) => text === 'After').length, 1);
    assert.equal(seen.includes('Before'), false);
    await page.locator('bellwire-inbox .bell').click();
    await page.locator('bellwire-inbox').getByRole('button', { name: 'All', exact: true }).click();
    await until('the list', async () => (await page.locator('bellwire-inbox .message').allTextContents()).join() === 'Expired,After,Before');
  }
  await end();
});

test('a token that is revoked ends it: no more requests, and the inbox says so', async () => {
  const { person, context, pages: [page], streams, end } = await open(1, true);
  const { items } = await here.hub.call(here.hub.admin, 'GET', '/v1/tokens');
  const mine = items.filter(({ scope, user_id: user }) => scope === 'user' && user === person.user);
  await here.hub.call(here.hub.admin, 'DELETE', `/v1/tokens/${mine[0].id}`);
  await page.locator('bellwire-inbox[data-connection=ended]').waitFor();
  let asked = 0;
  context.on('request', () => (asked += 1));
  await page.locator('bellwire-inbox .bell').click();
  await page.getByText('You are signed out. Sign in again to get new notifications.').waitFor();
  // Longer than any delay of reconnecting.
  await context.clock.runFor(120_000);
  assert.deepEqual([asked, streams.size], [0, 0]);
  await end();
});
