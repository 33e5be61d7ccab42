// The console in a browser, for its tests and pictures: people who are signed in, and a hub with something to see.
import { newContext } from './browser.mjs';
import { until } from './hub.mjs';

/** Opens a page of the console with this token, as if the tab had been signed in before. */
export async function openConsole(here, context, session, path = '/inbox') {
  const page = await context.newPage(); if (process.env.DEBUG15) { page.on('console', (m) => console.log(m.text())); page.on('pageerror', (e) => console.log(e.stack)); page.on('requestfailed', (r) => console.log('failed', r.url(), r.failure()?.errorText)); }
  await page.addInitScript((value) => sessionStorage.setItem('bellwire:session', value), JSON.stringify(session));
  await page.goto((here.console ?? here.hub.url) + path);
  await page.locator('bellwire-console nav').waitFor({ timeout: 8000 });
  return page;
}

/** A person's session: the token of one who signed in. */
export const personSession = (person) => ({ token: person.token, scope: 'user', user: person.user });
/** An operator who is also this person. */
export const adminSession = (here, user) => ({ token: here.hub.admin, scope: 'admin', user });

/** A context whose pages must do nothing wrong. */
export async function newConsole(here, session, path, options = {}) {
  const context = await newContext(here, options);
  const page = await openConsole(here, context, session, path);
  return { context, page };
}

/** Publishes events and takes them at an injection point, so that every page has something to show. */
export async function fillHub(here, person) {
  const { hub } = here;
  const admin = (method, where, body) => hub.call(hub.admin, method, where, body);
  await admin('PUT', '/v1/conversations/chat', { user_id: person.user, title: 'Release 2' });
  await admin('PUT', '/v1/conversations/research', { user_id: person.user });
  const event = (type, source, severity, payload, more = {}) => ({ type, source, severity, payload, conversation_id: 'chat', user_id: person.user, ...more });
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

export { until };
