// Signing in to the console: by a link that works once, by a token, from another tab; and how a session ends.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INSECURE_HOST, newContext, newPerson, stage, toast } from './browser.mjs';
import { fillHub, openConsole, openTab, personSession, row } from './console.mjs';
import { until } from './hub.mjs';

const here = stage();

async function link(user, scope = 'user') {
  const { code } = await here.hub.call(here.hub.admin, 'POST', '/v1/sign_in_codes', { user_id: user, scope });
  return `${here.hub.url}/sign-in#code=${code}`;
}

async function newTab(t, clock = false) {
  const context = await newContext(here);
  if (clock) await context.clock.install();
  t.after(async () => {
    assert.deepEqual(context.faults, []);
    await context.close();
  });
  return { context, page: await context.newPage() };
}

const nav = (page) => page.getByRole('navigation', { name: 'Main' });

test('a link signs in once; its code leaves the address at once, and the token is in no address and no lasting storage', async (t) => {
  const { context, page } = await newTab(t);
  const address = await link('ada');
  const urls = [];
  context.on('request', (request) => urls.push(request.url()));
  await page.goto(address);
  await nav(page).waitFor();
  assert.equal(page.url(), `${here.hub.url}/`);
  await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  assert.equal(await nav(page).getByRole('link', { name: 'Live' }).count(), 0, 'a person has no pages of an operator');
  const { token, storage, cookies } = await page.evaluate(() => ({ token: JSON.parse(sessionStorage.getItem('bellwire:session')).token, storage: JSON.stringify(localStorage), cookies: document.cookie }));
  assert.match(token, /^bw_/);
  assert.equal(storage.includes(token) || cookies.includes(token) || urls.some((url) => url.includes(token)), false);
  // A reload keeps it; the same link does not work again.
  await page.reload();
  await nav(page).waitFor();
  const other = await newTab(t);
  await other.page.goto(address);
  await other.page.getByText('This link was used before, or is older than ten minutes. Make a new one.').waitFor();
  assert.equal(other.page.url(), `${here.hub.url}/`);
});

test('an operator’s link shows the pages of an operator', async (t) => {
  const { page } = await newTab(t);
  await page.goto(await link('grace', 'admin'));
  for (const name of ['Inbox', 'Conversations', 'Settings', 'Live', 'Deliveries', 'Subscribers', 'Playground', 'Overview']) await nav(page).getByRole('link', { name, exact: true }).first().waitFor();
  assert.equal(await page.getByLabel('Viewing').first().inputValue(), 'grace');
});

test('without a session the page teaches how to get a link; a token works too', async (t) => {
  const { page } = await newTab(t);
  const person = await newPerson(here);
  await page.goto(`${here.hub.url}/settings`);
  await page.getByText('bellwire token link ada').waitFor();
  const field = page.getByLabel('Or use a token of scope user or admin');
  for (const [token, problem] of [['bw_nothing', 'The hub does not know this token. It may be revoked or expired.'], [person.agent, 'This token is not for people. Use one of scope user or admin.']]) {
    await field.fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText(problem).waitFor();
  }
  await field.fill(person.token);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Settings' }).waitFor();
});

test('a new tab asks an open one; signing out ends all tabs and the session on the hub', async (t) => {
  const { context, page } = await newTab(t);
  await page.goto(await link('ada'));
  await nav(page).waitFor();
  const second = await context.newPage();
  await second.goto(`${here.hub.url}/settings`);
  await nav(second).waitFor();
  const token = await second.evaluate(() => JSON.parse(sessionStorage.getItem('bellwire:session')).token);
  await second.getByRole('button', { name: 'Sign out' }).first().click();
  for (const tab of [page, second]) await tab.getByText('You signed out.').waitFor();
  assert.equal((await fetch(`${here.hub.url}/v1/token`, { headers: { authorization: `Bearer ${token}` } })).status, 401);
  assert.equal(await page.evaluate(() => sessionStorage.getItem('bellwire:session')), null);
});

test('sessions are listed and revoked in the settings; the revoked one asks to sign in and sends nothing more', async (t) => {
  const one = await newTab(t, true);
  const two = await newTab(t);
  await one.page.goto(await link('lin'));
  await nav(one.page).waitFor();
  await two.page.goto(await link('lin'));
  await nav(two.page).getByRole('link', { name: 'Settings' }).click();
  const sessions = two.page.locator('bellwire-sessions li');
  await until('two sessions', async () => (await sessions.count()) === 2);
  await sessions.filter({ hasText: 'this one' }).getByRole('button', { name: 'Sign out' }).waitFor();
  await sessions.filter({ hasNotText: 'this one' }).getByRole('button', { name: 'Revoke' }).click();
  await one.page.getByText('Your session has ended.').waitFor();
  await until('one session', async () => (await sessions.count()) === 1);
  let asked = 0;
  one.context.on('request', () => (asked += 1));
  // Longer than any delay of reconnecting.
  await one.context.clock.runFor(120_000);
  assert.equal(asked, 0);
  assert.equal(await nav(two.page).count(), 1);
});

test('a tab ends with its own session, also beside a tab of another session of the same person', async (t) => {
  const { context, page: one } = await newTab(t);
  await one.goto(await link('nia'));
  await nav(one).waitFor();
  const two = await context.newPage();
  await two.goto(await link('nia'));
  await nav(two).waitFor();
  const tokens = await Promise.all([one, two].map((page) => page.evaluate(() => JSON.parse(sessionStorage.getItem('bellwire:session')).token)));
  assert.notEqual(tokens[0], tokens[1]);
  const { items } = await here.hub.call(tokens[1], 'GET', '/v1/sessions');
  await here.hub.call(tokens[0], 'DELETE', `/v1/sessions/${items.find(({ current }) => current).id}`);
  await two.getByText('Your session has ended.').waitFor();
  assert.equal(await nav(one).count(), 1);
  // No name of a lock tells a token.
  const names = await one.evaluate(async () => (await navigator.locks.query()).held.map(({ name }) => name).join());
  assert.equal(tokens.some((token) => names.includes(token.slice(3, 12))), false, names);
});

test('a person’s page shows and asks for nothing of another person, and no page of an operator', async (t) => {
  const other = await newPerson(here);
  await other.send('A secret of another person');
  await other.show({ message: 'A secret toast', duration: 0 });
  await here.hub.call(here.hub.admin, 'PUT', '/v1/conversations/private', { user_id: other.user, title: 'Private talk' });
  const { person, page, context } = await openConsole(t, here);
  const urls = [];
  const bodies = [];
  context.on('request', (request) => urls.push(request.url()));
  context.on('response', (response) => !response.url().endsWith('/stream') && bodies.push(response.text().catch(() => '')));
  await person.send('Mine');
  await page.getByText('Mine').waitFor();
  for (const path of ['/conversations', '/settings', '/conversations/private', `/conversations/private?user=${other.user}`, '/live', '/deliveries', '/subscribers', '/playground', '/overview', '/inbox']) {
    await page.goto(here.hub.url + path);
    await page.locator('main').getByRole('heading').first().waitFor();
    if (path.startsWith('/conversations/private')) await page.getByText('There is no such conversation.').waitFor();
  }
  await page.goto(`${here.hub.url}/live`);
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
  assert.deepEqual((await Promise.all(bodies)).filter((body) => /secret|Private talk/.test(body)), []);
  assert.deepEqual(urls.filter((url) => url.includes('/v1/users/') && !url.includes(`/v1/users/${person.user}/`)), []);
});

test('an operator views another person read-only', async (t) => {
  const other = await newPerson(here);
  await other.send('What the other person got');
  const { page, context } = await openConsole(t, here, { admin: true });
  const changes = [];
  context.on('request', (request) => request.method() !== 'GET' && changes.push(`${request.method()} ${request.url()}`));
  await page.getByLabel('Viewing').first().fill(other.user);
  await page.keyboard.press('Enter');
  const item = page.locator('bellwire-inbox-page .item').filter({ hasText: 'What the other person got' });
  await item.waitFor();
  await page.getByText(`${other.user}, read only`).waitFor();
  assert.equal(await item.getByRole('button').count(), 0);
  // Out of the field, so that the keys are for the page.
  await page.getByRole('heading', { name: 'Inbox' }).click();
  for (const key of ['j', 'r', 'e', 'u']) await page.keyboard.press(key);
  await item.click();
  await item.getByText('Open the conversation').waitFor();
  await page.getByRole('link', { name: 'Settings' }).first().click();
  await page.getByText('Only the person can change it.').waitFor();
  assert.equal(await page.getByRole('switch', { name: 'Show toasts' }).getAttribute('aria-disabled'), 'true');
  const { items } = await here.hub.call(other.token, 'GET', `/v1/users/${other.user}/notifications`);
  assert.deepEqual(items.map(({ read_at: read, dismissed_at: dismissed }) => [read, dismissed]), [[null, null]]);
  assert.deepEqual(changes, []);
});

test('an operator reads another person’s conversation, and cannot write to it', async (t) => {
  const other = await newPerson(here);
  await fillHub(here, other);
  const { person, page, context } = await openConsole(t, here, { admin: true });
  await person.talk('chat', 'The operator’s own');
  const changes = [];
  context.on('request', (request) => request.method() !== 'GET' && changes.push(`${request.method()} ${request.url()}`));
  await page.goto(`${here.hub.url}/conversations/chat?user=${other.user}`);
  const talk = page.locator('bellwire-conversation');
  await talk.getByRole('heading', { name: 'Release 2' }).waitFor();
  await talk.getByText(`${other.user} · `).waitFor();
  await talk.getByText('nightly build - 3 tests failed').waitFor();
  await talk.getByRole('region', { name: 'What waits' }).getByText('Context Limit').waitFor();
  assert.equal(await page.getByLabel('Tell the agent').count(), 0);
  // What happens next is shown too.
  await other.inject('call_2');
  await here.hub.call(here.hub.admin, 'POST', `/v1/conversations/chat/inject?user_id=${other.user}`, { point: 'turn_start', call_id: 'turn_2' });
  await talk.getByRole('region', { name: 'What waits' }).waitFor({ state: 'detached' });
  // The same id is another conversation for the operator.
  await page.goto(`${here.hub.url}/conversations/chat`);
  await talk.getByRole('heading', { name: 'The operator’s own' }).waitFor();
  await page.getByLabel('Tell the agent').waitFor();
  assert.deepEqual(changes, []);
});

test('the playground acts for the operator who is signed in, also while another person is viewed', async (t) => {
  const [operator, other] = [await newPerson(here), await newPerson(here)];
  await other.send('What the other person got');
  const { code } = await here.hub.call(here.hub.admin, 'POST', '/v1/sign_in_codes', { user_id: operator.user, scope: 'admin' });
  const opened = await here.hub.call(null, 'POST', '/v1/sessions', { code });
  const context = await newContext(here);
  const page = await openTab(here, context, { token: opened.token, scope: 'admin', user: operator.user });
  await page.getByLabel('Viewing').first().fill(other.user);
  await page.keyboard.press('Enter');
  await page.getByText(`${other.user}, read only`).waitFor();
  await page.getByRole('link', { name: 'Playground' }).first().click();
  await page.getByLabel('Send', { exact: true }).selectOption('send_notification');
  const person = page.getByLabel('For the person');
  assert.deepEqual([await person.inputValue(), await person.getAttribute('readonly')], [operator.user, '']);
  await page.getByRole('button', { name: 'Call the tool' }).click();
  await page.locator('pre.answer').getByText('"success": true').waitFor();
  const items = async (user) => (await here.hub.call(opened.token, 'GET', `/v1/users/${user}/notifications`)).items.map(({ message }) => message);
  assert.deepEqual([await items(operator.user), await items(other.user)], [['Hello from the playground'], ['What the other person got']]);
  await context.close();
});

test('by plain HTTP from another machine, the console works without what browsers keep for secure pages', async (t) => {
  const insecure = { ...here, console: here.hub.url.replace('127.0.0.1', INSECURE_HOST) };
  const { context, page: one } = await newTab(t);
  await one.goto((await link('ola', 'admin')).replace('127.0.0.1', INSECURE_HOST));
  await nav(one).waitFor();
  const missing = await one.evaluate(() => [isSecureContext, 'locks' in navigator, 'clipboard' in navigator, 'randomUUID' in crypto]);
  assert.deepEqual(missing, [false, false, false, false]);
  // A new tab gets the session; each tab reads its own stream, and both stay in step.
  const two = await context.newPage();
  await two.goto(`${insecure.console}/inbox`);
  await nav(two).waitFor();
  const person = await newPerson(here, 'ola');
  const id = await person.show({ message: 'Plain', duration: 0, actions: [{ label: 'Go on', action: 'prompt', prompt: 'go on' }] });
  for (const page of [one, two]) await row(page, id).waitFor();
  await toast(one, id).getByRole('button', { name: 'Go on' }).click();
  await toast(two, id).waitFor({ state: 'detached' });
  await row(two, id).waitFor({ state: 'detached' });
  await one.goto(`${insecure.console}/settings`);
  await one.getByText('Browsers allow them only on pages over HTTPS and on localhost.').waitFor();
  assert.equal(await one.getByRole('switch', { name: 'Desktop notifications' }).getAttribute('aria-disabled'), 'true');
  await one.goto(`${insecure.console}/playground/show_notification`);
  await one.getByRole('button', { name: 'Call the tool' }).waitFor();
  assert.equal(await one.getByRole('button', { name: 'Copy' }).count(), 0);
  await one.goto(`${insecure.console}/live`);
  await one.getByText('events/s').waitFor();
  await two.getByRole('button', { name: 'Sign out' }).first().click();
  for (const page of [one, two]) await page.getByText('You signed out.').waitFor();
});

test('the page loads nothing from elsewhere, and its policy is strict', async (t) => {
  const { page } = await newTab(t);
  const answer = await page.goto(here.hub.url);
  const policy = answer.headers()['content-security-policy'];
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) assert.ok(policy.includes(part), `${part} in ${policy}`);
  assert.equal(policy.includes('unsafe'), false);
  assert.ok(answer.headers()['permissions-policy'], 'a Permissions-Policy');
  const loaded = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));
  assert.ok(loaded.length >= 2 && loaded.every((name) => name.startsWith(`${location(answer.url())}/`)), loaded.join());
  const [script] = loaded.filter((name) => name.endsWith('.js'));
  assert.match((await fetch(script)).headers.get('cache-control'), /immutable/);
});

function location(url) {
  return new URL(url).origin;
}

test('two tabs of one person share one stream', async (t) => {
  const person = await newPerson(here);
  const context = await newContext(here);
  const streams = new Set();
  context.on('request', (request) => request.url().endsWith('/stream') && streams.add(request));
  for (const event of ['requestfailed', 'requestfinished']) context.on(event, (request) => streams.delete(request));
  const pages = [await openTab(here, context, personSession(person)), await openTab(here, context, personSession(person))];
  await person.send('For both tabs');
  for (const page of pages) await page.getByText('For both tabs').waitFor();
  assert.equal(streams.size, 1);
  t.after(() => context.close());
});
