// The console in a browser, for its tests and pictures: people who are signed in, and a hub with something to see.
import assert from 'node:assert/strict';
import { newContext, newPerson } from './browser.mjs';

/** The session of a person, and of an operator who is also this person. */
export const personSession = (person) => ({ token: person.token, scope: 'user', user: person.user });
export const adminSession = ({ hub }, person) => ({ token: hub.admin, scope: 'admin', user: person.user });

/** Opens a page of the console in a new tab, as one that was signed in before. */
export async function openTab({ hub, console }, context, session, path = '/inbox') {
  const page = await context.newPage();
  await page.addInitScript((value) => sessionStorage.setItem('bellwire:session', value), JSON.stringify(session));
  await page.goto((console ?? hub.url) + path);
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
  return page;
}

/** A person of their own, and the console opened for them. A page that does something wrong fails the test. */
export async function openConsole(t, here, { path = '/inbox', admin = false, options = {}, person = null, tabs = 1 } = {}) {
  const someone = person ?? (await newPerson(here));
  const context = await newContext(here, options);
  const session = admin ? adminSession(here, someone) : personSession(someone);
  const pages = [];
  for (let at = 0; at < tabs; at++) pages.push(await openTab(here, context, session, path));
  t.after(async () => {
    assert.deepEqual(context.faults, []);
    await context.close();
  });
  return { person: someone, context, session, pages, page: pages[0] };
}

/** Publishes events and takes some at injection points, so that every page has something to show. */
export async function fillHub({ hub }, person) {
  const admin = (method, where, body) => hub.call(hub.admin, method, where, body);
  const event = (type, source, severity, payload, more = {}) => ({ type, source, severity, payload, conversation_id: 'chat', user_id: person.user, ...more });
  await person.talk('chat', 'Release 2');
  await person.talk('research');
  await admin('POST', '/v1/events', [
    event('budget.token.warning', 'budget_monitor', 'warning', { budget_type: 'token', percentage: 96, remaining: 2000 }),
    event('budget.iteration.warning', 'budget_monitor', 'warning', { budget_type: 'iteration', percentage: 70, remaining: 9 }),
    event('tool.call.failure', 'tool_executor', 'error', { tool_name: 'vault_search', error_type: 'timeout' }),
    event('tool.call.failure', 'tool_executor', 'error', { tool_name: 'vault_search', error_type: 'timeout' }),
    event('source.file.changed', 'file_watcher', 'info', { path: 'src/release notes.md' }),
    event('task.background.failed', 'ci', 'warning', { name: 'nightly build', error_message: '3 tests failed' }),
    event('tool.call.success', 'tool_executor', 'info', { tool_name: 'vault_search' }, { conversation_id: 'research' }),
  ]);
  await hub.call(person.token, 'POST', '/v1/conversations/chat/messages', { text: 'Please hold the release until the tests pass.' });
  await person.inject('call_1');
  await admin('POST', `/v1/conversations/chat/inject?user_id=${person.user}`, { point: 'turn_start', call_id: 'turn_1' });
  await admin('POST', '/v1/events', [
    event('context.limit.warning', 'budget_monitor', 'warning', { percentage: 72, remaining: 56000 }),
    event('budget.token.exceeded', 'budget_monitor', 'critical', { current: 50210, limit: 50000 }),
  ]);
}

/** The rows of the inbox page. */
export const rows = (page) => page.locator('bellwire-inbox-page .item');
export const row = (page, id) => page.locator(`bellwire-inbox-page .item[data-id="${id}"]`);
