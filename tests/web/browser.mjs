// What the browser tests share: a hub, the project's files behind a strict policy, a browser, and pages that are signed in.
import path from 'node:path';
import { after, before } from 'node:test';
import { chromium } from 'playwright-core';
import { startHub } from './hub.mjs';
import { serveSite } from './site.mjs';

const root = process.env.BELLWIRE_ROOT ?? path.resolve(import.meta.dirname, '../..');

/** Starts everything before the tests of a file and stops it after them. `prepare` returns the hub's variables; `fill` is called at the end. */
export function stage({ prepare = () => ({}), extra = {}, fill = () => undefined } = {}) {
  const here = {};
  before(async () => {
    here.site = await serveSite(root, extra);
    here.hub = await startHub({ BELLWIRE_SERVER_ALLOWED_ORIGINS: here.site.origin, BELLWIRE_SERVER_ALLOWED_HOSTS: INSECURE_HOST, BELLWIRE_LIMITS_TOASTS_PER_HOUR: '10000', ...(await prepare()) });
    here.site.hub = here.hub.url;
    here.browser = await launch();
    await fill(here);
  });
  after(async () => {
    await here.browser?.close();
    await here.hub?.stop();
    here.site?.close();
  });
  return here;
}

/** A host name that is this machine. Its pages are not secure to a browser, unlike those of localhost. */
export const INSECURE_HOST = 'bell.test';

/** Starts Chromium, which sometimes crashes while it starts on a machine that is busy: then once more. */
async function launch() {
  const start = () => chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`] });
  return start().catch((error) => {
    if (!String(error).includes('SIGSEGV')) throw error;
    return start();
  });
}

/** A person of their own for each test, so that no test sees the notifications of another. */
let people = 0;
export async function newPerson({ hub }, name = null) {
  const user = name ?? `person-${process.pid}-${++people}`;
  const agent = await hub.token('agent', { user_id: user, conversation_id: 'chat' });
  const loose = await hub.token('agent', { user_id: user });
  const token = await hub.token('user', { user_id: user });
  const tool = async (name, toolArguments, by = agent) => {
    const answer = await hub.call(by, 'POST', `/v1/tools/${name}`, { arguments: toolArguments });
    if (!answer.success) throw new Error(`${name}: ${JSON.stringify(answer)}`);
    return answer;
  };
  return {
    user, token, agent,
    call: (method, where, body) => hub.call(token, method, `/v1/users/${user}${where}`, body),
    /** Shows a toast; returns its id. */
    show: async (toast) => (await tool('show_notification', { message: 'Hello', severity: 'info', ...toast })).notification.id,
    /** The same, from no conversation. */
    showLoose: async (toast) => (await tool('show_notification', { message: 'Hello', severity: 'info', ...toast }, loose)).notification.id,
    send: async (message, type) => (await tool('send_notification', { message, type })).notification_id,
    /** Opens a conversation. */
    talk: (id, title) => hub.call(token, 'PUT', `/v1/conversations/${id}`, { user_id: user, title }),
    inject: (callId) => hub.call(agent, 'POST', '/v1/conversations/chat/inject', { point: 'after_tool', call_id: callId, tool_result: 'ok' }),
  };
}

/**
 * A browser context whose pages report what they must not do: errors, and breaches of the policy. A lost connection is
 * none, nor is a header that a browser heeds only over HTTPS.
 */
export async function newContext({ browser }, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, ...options });
  const faults = [];
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
  });
  context.on('weberror', (error) => faults.push(String(error.error())));
  context.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|ERR_CONNECTION|net::|Opener-Policy header has been ignored/.test(message.text())) faults.push(message.text());
  });
  return Object.assign(context, { faults });
}

/** Opens the plain example page as this person and waits until its stream is open. */
export async function openPage(here, context, person) {
  const page = await context.newPage();
  await signIn(here, page, person);
  return page;
}

export async function signIn({ site, hub }, page, person) {
  await page.goto(`${site.origin}/examples/web-page/`);
  await page.getByLabel('Hub').fill(hub.url);
  await page.getByLabel('You', { exact: true }).fill(person.user);
  await page.getByLabel('Your token').fill(person.token);
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.locator('bellwire-inbox').and(page.locator('[data-connection=live]')).waitFor({ state: 'attached' });
}

/** Waits until nothing appears or goes any more. Bars that show the time go on. */
export const settled = (page) => page.evaluate(() => {
  const roots = (root) => [root, ...[...root.querySelectorAll('*')].flatMap(({ shadowRoot }) => (shadowRoot ? roots(shadowRoot) : []))];
  const animations = roots(document).flatMap((root) => root.getAnimations());
  const short = animations.filter(({ effect }) => effect.getTiming().duration < 1000);
  return Promise.all(short.map(({ finished }) => finished.catch(() => null))).then(() => undefined);
});

/** The toasts of a page, from the front to the back. */
export const toasts = (page) => page.locator('bellwire-toast-layer .toast:not([data-phase=leaving])');
export const toast = (page, id) => page.locator(`bellwire-toast-layer .toast[data-id="${id}"]`);
