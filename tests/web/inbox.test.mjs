// The bell and its inbox, in a browser, against the real hub.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newContext, newPerson, openPage, stage, toast, toasts } from './browser.mjs';
import { until } from './hub.mjs';

const here = stage();
const BUTTONS = [
  { label: 'View Logs', action: 'prompt', prompt: 'show me the build logs' },
  { label: 'Retry Build', action: 'prompt', prompt: 'retry the build' },
  { label: 'Not now', action: 'dismiss' },
];

/** A person with a page. Toasts are switched off unless the test is about both. */
async function open({ withToasts = false, ...options } = {}) {
  const person = await newPerson(here);
  if (!withToasts) await person.call('PATCH', '/settings', { toasts: { enabled: false } });
  const context = await newContext(here, options);
  const page = await openPage(here, context, person);
  const end = async () => {
    assert.deepEqual(context.faults, []);
    await context.close();
  };
  return { person, context, page, end };
}

const bell = (page) => page.locator('bellwire-inbox .bell');
const badge = (page) => page.locator('bellwire-inbox .badge');
const rows = (page) => page.locator('bellwire-inbox .item');
const row = (page, id) => page.locator(`bellwire-inbox .item[data-id="${id}"]`);
const panel = (page) => page.locator('bellwire-inbox .panel');
const texts = (page) => rows(page).locator('.message').allTextContents();
const shows = (page, expected) => until(JSON.stringify(expected), async () => JSON.stringify(await texts(page)) === JSON.stringify(expected));
const filter = (page, name) => panel(page).getByRole('button', { name, exact: true }).click();

test('the bell counts what is unread, live, and says so', async () => {
  const { person, page, end } = await open();
  assert.equal(await badge(page).count(), 0);
  assert.equal(await bell(page).getAttribute('aria-label'), 'Notifications');
  await person.send('One');
  await until('a count', async () => (await badge(page).count()) && (await badge(page).textContent()) === '1');
  await person.show({ message: 'Two' });
  await until('a count', async () => (await badge(page).textContent()) === '2');
  assert.equal(await bell(page).getAttribute('aria-label'), 'Notifications, 2 unread');
  await person.call('POST', '/notifications/read_all');
  await badge(page).waitFor({ state: 'detached' });
  await end();
});

test('the list has the newest first, and what arrives while it is open', async () => {
  const { person, page, end } = await open();
  await person.send('One', 'warning');
  await person.show({ title: 'Title', message: 'Two', severity: 'error' });
  await bell(page).click();
  await shows(page, ['Two', 'One']);
  assert.match((await rows(page).first().textContent()).replace(/\s+/g, ' '), /Unread Error Title Two butler · chat · now/);
  await person.send('Three', 'reminder');
  await shows(page, ['Three', 'Two', 'One']);
  await end();
});

test('it opens and closes by keyboard, and the focus returns to the bell', async () => {
  const { person, page, end } = await open();
  await person.send('One');
  await bell(page).focus();
  await page.keyboard.press('Enter');
  await rows(page).first().waitFor();
  assert.equal(await bell(page).getAttribute('aria-expanded'), 'true');
  await page.keyboard.press('Escape');
  await panel(page).waitFor({ state: 'hidden' });
  assert.ok(await bell(page).evaluate((element) => element.matches(':focus')));
  assert.equal(await bell(page).getAttribute('aria-expanded'), 'false');
  await end();
});

test('an item is read, unread and dismissed; all are read at once', async () => {
  const { person, page, end } = await open();
  const [one, two] = [await person.send('One'), await person.send('Two')];
  await bell(page).click();
  await filter(page, 'All');
  await row(page, one).getByRole('button', { name: 'Mark as read' }).click();
  await row(page, one).and(page.locator('.read')).waitFor();
  await until('the count', async () => (await badge(page).textContent()) === '1');
  await row(page, one).getByRole('button', { name: 'Mark as unread' }).click();
  await row(page, one).and(page.locator('.unread')).waitFor();
  await row(page, two).getByRole('button', { name: 'Dismiss' }).click();
  await shows(page, ['One']);
  assert.notEqual((await person.call('GET', '/notifications?state=dismissed')).items[0].dismissed_at, null);
  await person.send('Three');
  await shows(page, ['Three', 'One']);
  await panel(page).getByRole('button', { name: 'Mark all as read' }).click();
  await badge(page).waitFor({ state: 'detached' });
  await until('all read', async () => (await page.locator('bellwire-inbox .item.unread').count()) === 0);
  assert.equal((await person.call('GET', '/notifications/unread_count')).count, 0);
  await end();
});

test('filters show unread, all, dismissed, and one type; each empty one says what it is', async () => {
  const { person, page, end } = await open();
  await bell(page).click();
  await panel(page).getByText('Nothing unread. When an agent needs you, it shows here.').waitFor();
  await filter(page, 'Dismissed');
  await panel(page).getByText('Nothing was dismissed.').waitFor();
  await filter(page, 'Unread');
  const [read, dismissed] = [await person.send('Read', 'warning'), await person.send('Dismissed')];
  await person.send('Unread');
  await person.call('PATCH', `/notifications/${read}`, { read: true });
  await person.call('DELETE', `/notifications/${dismissed}`);
  await shows(page, ['Unread']);
  await filter(page, 'All');
  await shows(page, ['Unread', 'Read']);
  await panel(page).getByLabel('Type').selectOption('warning');
  await shows(page, ['Read']);
  await panel(page).getByLabel('Type').selectOption('');
  await filter(page, 'Dismissed');
  await shows(page, ['Dismissed']);
  await end();
});

test('a long list is loaded page by page, without gaps while new items arrive', async () => {
  const { person, page, end } = await open();
  for (let at = 0; at < 45; at++) await person.show({ message: `Item ${at}` });
  await person.call('POST', '/notifications/read_all');
  await bell(page).click();
  await filter(page, 'All');
  await until('a page', async () => (await rows(page).count()) === 20);
  await person.show({ message: 'New' });
  await until('the new one', async () => (await rows(page).count()) === 21);
  for (const count of [41, 46]) {
    await panel(page).getByRole('button', { name: 'Load more' }).click();
    await until(`${count} items`, async () => (await rows(page).count()) === count);
  }
  assert.equal(await panel(page).getByRole('button', { name: 'Load more' }).count(), 0);
  assert.deepEqual(await texts(page), ['New', ...Array.from({ length: 45 }, (_, at) => `Item ${44 - at}`)]);
  await end();
});

describe('its buttons', () => {
  test('are those of the toast: pressing one sends the prompt, withdraws the toast and says what was answered', async () => {
    const { person, page, end } = await open({ withToasts: true });
    const id = await person.show({ message: 'Build failed', severity: 'error', duration: 0, actions: BUTTONS, position: 'bottom-right' });
    await toast(page, id).waitFor();
    await bell(page).click();
    await filter(page, 'All');
    await row(page, id).waitFor();
    assert.deepEqual(await row(page, id).locator('.actions button').allTextContents(), ['View Logs', 'Retry Build', 'Not now']);
    assert.match(await row(page, id).textContent(), /View Logs sends “show me the build logs”/);
    await row(page, id).getByRole('button', { name: 'View Logs' }).click();
    await row(page, id).getByText('Answered: View Logs').waitFor();
    await toast(page, id).waitFor({ state: 'detached' });
    assert.match((await person.inject('call_1')).block, /show me the build logs/);
    await end();
  });

  test('of a toast that timed out still work', async () => {
    const { person, page, end } = await open({ withToasts: true });
    const id = await person.show({ message: 'Build failed', duration: 1, actions: BUTTONS });
    await bell(page).click();
    await row(page, id).getByRole('button', { name: 'Retry Build' }).click();
    await until('the prompt', async () => (await person.inject(`call_${Math.random()}`)).block.includes('retry the build'));
    await end();
  });

  test('say why a request failed, next to the item, and retry', async () => {
    const { person, page, end } = await open();
    const id = await person.send('One');
    await bell(page).click();
    await page.route('**/notifications/*', (route) => (route.request().method() === 'PATCH' ? route.abort() : route.fallback()));
    await row(page, id).getByRole('button', { name: 'Mark as read' }).click();
    await row(page, id).getByText('Not sent: the hub cannot be reached.').waitFor();
    await page.unroute('**/notifications/*');
    await row(page, id).getByRole('button', { name: 'Retry' }).click();
    await row(page, id).waitFor({ state: 'detached' });
    assert.equal((await person.call('GET', '/notifications/unread_count')).count, 0);
    await end();
  });
});

test('a list that cannot be loaded says why and can be loaded again', async () => {
  const { person, page, end } = await open();
  await person.send('One');
  await bell(page).click();
  await page.route('**/notifications?*', (route) => route.abort());
  await filter(page, 'All');
  await panel(page).getByText('The list could not be loaded: the hub cannot be reached.').waitFor();
  await page.unroute('**/notifications?*');
  await panel(page).getByRole('button', { name: 'Retry' }).click();
  await shows(page, ['One']);
  await end();
});

test('texts can be replaced, and the theme chosen', async () => {
  const { person, page, end } = await open({ withToasts: true });
  await page.evaluate(() => {
    document.querySelector('bellwire-toaster').strings = { dismiss: 'Verwerfen' };
    Object.assign(document.querySelector('bellwire-inbox'), { strings: { notifications: 'Nachrichten', bell: (count) => `Nachrichten, ${count} neu` }, theme: 'dark' });
    document.querySelector('bellwire-toaster').setAttribute('theme', 'dark');
    document.documentElement.style.setProperty('--bellwire-error', 'rgb(1, 2, 3)');
  });
  const id = await person.show({ severity: 'error', duration: 0, position: 'bottom-right' });
  await toast(page, id).getByRole('button', { name: 'Verwerfen' }).waitFor();
  await page.getByRole('button', { name: 'Nachrichten, 1 neu' }).click();
  await panel(page).getByRole('heading', { name: 'Nachrichten' }).waitFor();
  const colours = await toast(page, id).evaluate((element) => [getComputedStyle(element).borderLeftColor, getComputedStyle(element).backgroundColor]);
  assert.deepEqual(colours, ['rgb(1, 2, 3)', 'rgb(27, 27, 26)']);
  assert.equal(await panel(page).evaluate((element) => getComputedStyle(element).backgroundColor), 'rgb(27, 27, 26)');
  assert.equal(await toasts(page).count(), 1);
  await end();
});
