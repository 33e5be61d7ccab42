// Each example page, as its README says.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { newContext, newPerson, openPage, stage, toast, toasts } from './browser.mjs';
import { until } from './hub.mjs';

const root = process.env.BELLWIRE_ROOT;
const extra = {};
const here = stage({ extra });
const BUTTONS = [{ label: 'View Logs', action: 'prompt', prompt: 'show me the build logs' }];

/** A context that ends with the test, in which a page must do nothing wrong. */
async function open(t, options) {
  const context = await newContext(here, options);
  t.after(async () => {
    assert.deepEqual(context.faults, []);
    await context.close();
  });
  return context;
}

test('web-page: a bell and toasts in a plain page', async (t) => {
  const context = await open(t);
  const person = await newPerson(here);
  const page = await openPage(here, context, person);
  const id = await person.show({ duration: 0, actions: BUTTONS });
  await toast(page, id).getByRole('button', { name: 'View Logs' }).click();
  await page.getByText('The agent reads: show me the build logs').waitFor();
  assert.match((await person.inject('call_1')).block, /show me the build logs/);
});

test('web-proxy: the page reaches the hub through its own server, and holds no token', async (t) => {
  const context = await open(t);
  const agent = await here.hub.token('agent', { conversation_id: 'chat' });
  const token = await here.hub.token('user');
  const server = spawn(process.execPath, [path.join(root, 'examples/web-proxy/server.mjs')], {
    env: { BELLWIRE_TOKEN: token, BELLWIRE_URL: here.hub.url, PORT: '0' }, stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => server.kill());
  const url = await new Promise((ready) => server.stdout.once('data', (data) => ready(String(data).trim())));
  const page = await context.newPage();
  const requests = [];
  page.on('request', (request) => requests.push(request));
  await page.goto(url);
  await page.locator('bellwire-inbox[data-connection=live]').waitFor();
  const show = async (more) => (await here.hub.call(agent, 'POST', '/v1/tools/show_notification', { arguments: { message: 'Hello', severity: 'info', duration: 0, ...more } })).notification.id;
  const id = await show({ actions: BUTTONS });
  await toast(page, id).getByRole('button', { name: 'View Logs' }).click();
  await toast(page, id).getByText('Sent').waitFor();
  const injected = await here.hub.call(agent, 'POST', '/v1/conversations/chat/inject', { point: 'after_tool', call_id: 'call_1', tool_result: 'ok' });
  assert.match(injected.block, /show me the build logs/);
  for (const request of requests) {
    assert.ok(request.url().startsWith(url), request.url());
    assert.equal((await request.allHeaders()).authorization, undefined);
  }
  // What is not the person's, and requests of other sites.
  const statuses = await page.evaluate(async () => Promise.all(
    [['/bellwire/v1/users/eve/stream'], ['/bellwire/v1/tokens'], ['/bellwire/v1/users/ada/settings', { method: 'PATCH', body: '{}' }], ['/bellwire/v1/users/ada/../eve/stream']].map(async ([where, init]) => (await fetch(where, init)).status)));
  assert.deepEqual(statuses, [404, 404, 404, 404]);
  assert.equal((await fetch(`${url}bellwire/v1/users/ada/stream`)).status, 401);
  await page.reload();
  assert.equal(await toasts(page).count(), 0);
});

test('web-chat: toasts from the stream of a chat, without a hub; another tool cannot forge one', async (t) => {
  const context = await open(t);
  const page = await context.newPage();
  await page.goto(`${here.site.origin}/examples/web-chat/`);
  const say = async (text) => {
    await page.getByLabel('Say something').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  };
  await say('fetch the page');
  await page.getByText('Agent: The page is strange.').waitFor();
  await say('deploy it');
  await toasts(page).getByText('Workflow deployed to production').waitFor();
  assert.equal(await toasts(page).count(), 1, 'no forged toast');
  assert.match(await toasts(page).locator('.meta').textContent(), /sends “show me the deployment logs”/);
  await toasts(page).getByRole('button', { name: 'View Logs' }).click();
  await page.getByText('You: show me the deployment logs', { exact: true }).waitFor();
  await page.getByText('Agent: You said: show me the deployment logs').waitFor();
  await until('no toast', async () => (await toasts(page).count()) === 0);
});

test('web-chat: without a handler a prompt button is disabled and says why', async (t) => {
  const context = await open(t);
  const page = await context.newPage();
  await page.goto(`${here.site.origin}/examples/web-chat/`);
  const show = () => page.evaluate(async () => {
    const { connect, notificationsFrom } = await import('/web/dist/elements.js');
    window.bellwire ??= connect({});
    const notification = { id: 'n1', message: 'Hello', severity: 'info', duration: 0, actions: [{ label: 'Go', action: 'prompt', prompt: 'go on' }, { label: 'OK', action: 'dismiss' }] };
    notificationsFrom().result('show_notification', { success: true, notification });
  });
  await show();
  const go = toasts(page).getByRole('button', { name: 'Go' });
  assert.equal(await go.getAttribute('aria-disabled'), 'true');
  assert.match(await toasts(page).locator('.meta').textContent(), /This page cannot send it to the agent\./);
  await go.click({ force: true });
  assert.equal(await toasts(page).first().getAttribute('data-phase'), 'open');
  // It is there again when the chat is opened again, until the person has dealt with it.
  await page.reload();
  await show();
  await toasts(page).getByRole('button', { name: 'OK' }).click();
  await until('no toast', async () => (await toasts(page).count()) === 0);
  await show();
  await page.reload();
  await show();
  assert.equal(await page.evaluate(() => window.bellwire.toasts.get().toasts.length), 0);
});

test('web-react: typed components and hooks', async (t) => {
  const web = path.join(root, 'web');
  const bundle = execFileSync(path.join(web, 'node_modules/.bin/esbuild'), [
    path.join(root, 'examples/web-react/app.tsx'), '--bundle', '--format=esm', '--jsx=automatic', '--define:process.env.NODE_ENV="production"',
    `--alias:bellwire-web/react=${path.join(web, 'dist/react.js')}`, '--log-level=warning',
  ], { cwd: web, env: { ...process.env, NODE_PATH: path.join(web, 'node_modules') }, maxBuffer: 1e8 });
  extra['/examples/web-react/app.js'] = bundle;
  const context = await open(t);
  const person = await newPerson(here);
  const page = await context.newPage();
  await page.goto(`${here.site.origin}/examples/web-react/`);
  await page.getByLabel('Hub').fill(here.hub.url);
  await page.getByLabel('You', { exact: true }).fill(person.user);
  await page.getByLabel('Your token').fill(person.token);
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.locator('bellwire-inbox[data-connection=live]').waitFor();
  const id = await person.show({ duration: 0, actions: BUTTONS });
  await until('the title', async () => (await page.title()) === '(1) My chat');
  await toast(page, id).getByRole('button', { name: 'View Logs' }).click();
  await toast(page, id).getByText('Told the agent').waitFor();
  await page.getByText('The agent reads: show me the build logs').waitFor();
  await until('the title', async () => (await page.title()) === 'My chat');
  await person.show({ message: 'Stays', duration: 0 });
  await toasts(page).getByText('Stays').waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await until('no toast', async () => (await toasts(page).count()) === 0);
  await page.locator('bellwire-inbox[data-connection=none]').waitFor();
});
