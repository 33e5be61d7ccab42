// Pictures of each page of the console, of a mail and of the unsubscribe page, at desktop and phone size, light and dark, for
// people to look at.
//
//   make screenshots
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright-core';
import { newContext, newPerson, settled } from './browser.mjs';
import { adminSession, fillHub, openTab, personSession } from './console.mjs';
import { startHub, until } from './hub.mjs';
import { htmlOf, mailServer } from './mail.mjs';

const folder = path.join(process.env.BELLWIRE_ROOT, 'target/screenshots');
const SIZES = { desktop: { width: 1200, height: 760 }, phone: { width: 390, height: 844 } };
/** Each picture: its page, what shows that it is complete, and what is done before it is taken. */
const PAGES = {
  inbox: ['/inbox', (page) => page.locator('.item').nth(3)],
  conversations: ['/conversations', (page) => page.getByText('Release 2')],
  conversation: ['/conversations/chat', (page) => page.getByRole('columnheader', { name: 'percent' })],
  settings: ['/settings', (page) => page.getByRole('slider', { name: 'Quiet from' })],
  live: ['/live', (page) => page.getByText('events/s'), async (page) => {
    await work('website');
    await page.locator('.live-row').filter({ hasText: 'tool.call.failure' }).filter({ hasText: 'injected · call_8' }).first().getByRole('button').click();
  }],
  deliveries: ['/deliveries', (page) => page.locator('.delivery').nth(1)],
  subscribers: ['/subscribers', (page) => page.locator('.subscriber').nth(5)],
  'try-out': ['/subscribers/tool_failure', (page) => page.getByText('What the agent reads')],
  playground: ['/playground/show_notification', (page) => page.getByLabel('severity')],
  overview: ['/overview', (page) => page.locator('bellwire-plot canvas').nth(5)],
};

/** How many turns `work` has started. */
let started = 1;
await mkdir(folder, { recursive: true });
const mail = await mailServer();
const hub = await startHub({ BELLWIRE_EMAIL_HOST: '127.0.0.1', BELLWIRE_EMAIL_PORT: String(mail.port), BELLWIRE_EMAIL_TLS: 'none' });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
const here = { hub, browser };
try {
  const ada = await newPerson(here, 'ada');
  await fill(ada);
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) await take(ada, `${size}-${colorScheme}`, { viewport, colorScheme });
  }
} finally {
  await browser.close();
  await hub.stop();
  mail.close();
}

/** A working day: mails that were sent and one that was refused, notifications, events, quiet hours. */
async function fill(person) {
  const address = 'ada@example.org';
  await person.call('PATCH', '/settings', { email: { enabled: true, address } });
  const code = await until('the code', () => mail.mails.map((one) => one.match(/^\s*(\d{6})\s*$/m)?.[1]).find(Boolean));
  await person.call('POST', '/email/confirm', { code });
  await person.send('Your passport expires on 3 May', 'reminder');
  await until('the mail', () => mail.mails.length === 2);
  mail.refuses = true;
  await person.send('The nightly backup took twice as long as usual', 'warning');
  await until('the dead letter', async () => (await hub.call(hub.admin, 'GET', '/v1/deliveries?state=failed')).items.length > 0);
  mail.refuses = false;
  await person.call('PATCH', '/settings', { quiet_hours: { start: '22:00', end: '07:00', timezone: 'Europe/Berlin' }, muted_origins: ['newsletter'] });
  await person.send('Three invoices are ready for you', 'info');
  await person.show({
    title: 'Build failure', message: 'Build failed - 3 tests failing. Check logs for details.', severity: 'error', duration: 1,
    actions: [{ label: 'View logs', action: 'prompt', prompt: 'show me the detailed build logs' }, { label: 'Dismiss', action: 'dismiss' }],
  });
  const read = await person.show({ message: 'Workflow deployed to production', severity: 'success', duration: 1 });
  await person.call('PATCH', `/notifications/${read}`, { read: true });
  await fillHub(here, person);
}

/** What an agent of ada does while Live is open. */
async function work(conversation) {
  const publish = (...events) => hub.call(hub.admin, 'POST', '/v1/events', events.map(([type, source, severity, payload]) => ({ type, source, severity, payload, conversation_id: conversation, user_id: 'ada' })));
  const inject = (point, call) => hub.call(hub.admin, 'POST', `/v1/conversations/${conversation}/inject?user_id=ada`, { point, call_id: call });
  await hub.call(hub.admin, 'PUT', `/v1/conversations/${conversation}`, { user_id: 'ada' });
  await inject('turn_start', `turn_${started++}`);
  const failure = ['tool.call.failure', 'tool_executor', 'error', { tool_name: `vault_search_${started}`, error_type: 'timeout' }];
  await publish(failure, failure, ['task.background.failed', 'ci', 'warning', { name: `build ${started}`, error_message: '3 tests failed' }]);
  await inject('after_tool', `call_8${started === 2 ? '' : started}`);
  await publish(['source.file.changed', 'file_watcher', 'info', { path: `src/page_${started}.md` }], ['budget.token.exceeded', 'budget_monitor', 'critical', { current: 50210 + started, limit: 50000 }], ['tool.call.success', 'tool_executor', 'info', { tool_name: 'vault_search' }]);
}

async function take(person, name, options) {
  const context = await newContext(here, options);
  const page = await openTab(here, context, adminSession(here, person));
  for (const [what, [where, complete, prepare]] of Object.entries(PAGES)) {
    await page.goto(hub.url + where);
    await complete(page).first().waitFor({ state: 'attached' });
    if (what === 'inbox') await page.getByRole('button', { name: 'All', exact: true }).click();
    await prepare?.(page);
    await page.mouse.move(2, 2);
    await page.waitForTimeout(300);
    await settled(page);
    await page.screenshot({ path: path.join(folder, `console-${what}-${name}.png`) });
  }
  await context.close();
  await takeEmpty(name, options);
  await takeOutside(name, options);
}

/** What a person sees before anything happened. */
async function takeEmpty(name, options) {
  const nobody = await newPerson(here);
  const context = await newContext(here, options);
  const page = await openTab(here, context, personSession(nobody));
  for (const [what, text] of [['inbox', 'Nothing unread.'], ['conversations', 'No conversation yet.']]) {
    await page.goto(`${hub.url}/${what}`);
    await page.getByText(text).waitFor();
    await page.screenshot({ path: path.join(folder, `console-empty-${what}-${name}.png`) });
  }
  await context.close();
}

/** Pages without a session: signing in, the link of a mail, and the mail itself. */
async function takeOutside(name, options) {
  const context = await newContext(here, options);
  const page = await context.newPage();
  const shoot = (what) => page.screenshot({ path: path.join(folder, `${what}-${name}.png`) });
  await page.goto(hub.url);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await shoot('console-sign-in');
  const letter = mail.mails.find((one) => one.includes('passport'));
  await page.goto(letter.match(/^List-Unsubscribe:\s*<([^>]*)>/m)[1]);
  await shoot('unsubscribe');
  // Not in the page of the link: its policy would hold for the mail too.
  await page.goto('about:blank');
  await page.setContent(htmlOf(letter));
  await shoot('mail');
  await context.close();
}
