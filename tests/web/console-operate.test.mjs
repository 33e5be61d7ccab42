// The pages of an operator, and conversations and settings, against the real hub.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { newPerson, stage } from './browser.mjs';
import { fillHub, openConsole } from './console.mjs';
import { startTelegram, until } from './hub.mjs';
import { mailServer } from './mail.mjs';

let [mail, telegram] = [null, null];
const here = stage({
  prepare: async () => {
    [mail, telegram] = await Promise.all([mailServer(), startTelegram()]);
    return {
      BELLWIRE_EMAIL_HOST: '127.0.0.1', BELLWIRE_EMAIL_PORT: String(mail.port), BELLWIRE_EMAIL_TLS: 'none',
      BELLWIRE_TELEGRAM_TOKEN: telegram.token, BELLWIRE_TELEGRAM_API_URL: telegram.url,
    };
  },
});
after(() => {
  mail.close();
  telegram.stop();
});
const admin = (method, where, body) => here.hub.call(here.hub.admin, method, where, body);
const failure = (person, tool = 'vault_search', more = {}) => ({ type: 'tool.call.failure', source: 'tool_executor', severity: 'error', payload: { tool_name: tool, error_type: 'timeout' }, conversation_id: 'chat', user_id: person.user, ...more });

describe('live', () => {
  test('an event arrives, its outcome changes in place, and its trace says why', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/live' });
    await person.talk('chat');
    await page.getByText('events/s').waitFor();
    const { events: [event] } = await admin('POST', '/v1/events', failure(person));
    const row = page.locator(`.live-row[data-key="${event.event_id}"]`);
    await row.getByText('held', { exact: true }).waitFor();
    await row.getByRole('button', { name: 'tool.call.failure' }).click();
    const trace = page.getByRole('complementary', { name: 'Trace' });
    await trace.getByText('15 subscribers asked, 1 listens').waitFor();
    assert.equal(new URL(page.url()).pathname, `/live/${event.event_id}`);
    const { block } = await person.inject('call_1');
    await row.getByText('injected · call_1').waitFor();
    await trace.getByText('Injected at after_tool, call_1').waitFor();
    const [, text] = block.match(/- \[tool_executor\] (.*)/);
    await trace.locator('.path pre').getByText(text, { exact: true }).waitFor();
    await page.reload();
    await page.getByRole('complementary', { name: 'Trace' }).getByText('Injected at after_tool, call_1').waitFor();
  });

  test('each severity has its icon, its word and its colour, in the row and in the trace', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/live' });
    await person.talk('chat');
    await page.getByText('events/s').waitFor();
    const seen = new Map();
    for (const severity of ['debug', 'info', 'warning', 'error', 'critical']) {
      const { events: [event] } = await admin('POST', '/v1/events', failure(person, `tool_${severity}`, { severity }));
      const row = page.locator(`.live-row[data-key="${event.event_id}"]`);
      const mark = async (where) => {
        const icon = where.filter({ hasText: `${severity}: ` }).locator('.sev > svg');
        await icon.waitFor();
        return icon.evaluate((svg) => `${getComputedStyle(svg).color} ${getComputedStyle(svg).strokeWidth} ${svg.querySelectorAll('circle').length} ${svg.innerHTML.length}`);
      };
      seen.set(severity, await mark(row.locator('.type')));
      await row.getByRole('button', { name: 'tool.call.failure' }).click();
      assert.match(await mark(page.getByRole('complementary', { name: 'Trace' }).locator('h2')), /rgb/);
    }
    assert.equal(new Set(seen.values()).size, 5, JSON.stringify([...seen]));
  });

  test('it pauses when the person scrolls, keeps 500 rows, and filters', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/live' });
    await person.talk('chat');
    await page.getByText('events/s').waitFor();
    const publish = (count, name) => admin('POST', '/v1/events', Array.from({ length: count }, (_, at) => failure(person, `${name}_${at}`, { source: name })));
    await publish(60, 'early');
    const list = page.locator('bellwire-live-page bellwire-rows');
    await page.locator('.live-row').filter({ hasText: 'early' }).first().waitFor();
    await list.evaluate((element) => { element.scrollTop = 300; });
    await page.getByText('paused').waitFor();
    await publish(23, 'later');
    await page.getByRole('button', { name: '23 new, resume' }).click();
    await page.locator('.live-row').filter({ hasText: 'later' }).first().waitFor();
    await publish(500, 'many');
    await until('500 rows', async () => (await page.locator('.live-table').getAttribute('aria-rowcount')) === '500');
    assert.ok((await page.locator('.live-row').count()) < 100);
    await page.getByLabel('Filter').fill('later chat');
    await page.getByText('No event has these words and this outcome.').waitFor();
    await page.getByLabel('Filter').fill('many');
    await page.getByRole('button', { name: 'Told', exact: true }).click();
    await page.getByText('No event has these words and this outcome.').waitFor();
  });

  test('after a lost connection it loads what it missed; if that is too much, it says what is missing', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/live' });
    await person.talk('chat');
    await page.getByText('events/s').waitFor();
    const publish = async (name, count = 1) => (await admin('POST', '/v1/events', Array.from({ length: count }, (_, at) => failure(person, `${name}_${at}`, { source: name })))).events.at(-1).event_id;
    const lose = async (meanwhile) => {
      await page.route('**/v1/events/stream', (route) => route.abort());
      await here.hub.kill();
      await page.locator('.rate').getByText('Reconnecting…').waitFor();
      await here.hub.restart();
      await meanwhile();
      await page.unroute('**/v1/events/stream');
      await page.getByText('events/s').waitFor();
    };
    const before = await publish('before');
    const row = page.locator(`.live-row[data-key="${before}"]`);
    await row.getByText('held', { exact: true }).waitFor();
    await lose(async () => {
      await person.inject('call_1');
      for (const name of ['missed_1', 'missed_2']) await publish(name);
    });
    await publish('after');
    const sources = () => page.locator('.live-row .source').allTextContents().then((all) => all.slice(0, 4).join());
    await until('all in order', async () => (await sources()) === 'after,missed_2,missed_1,before');
    // The page did not see the injection; the trace did.
    await row.getByText('was held').waitFor();
    await row.getByRole('button', { name: 'tool.call.failure' }).click();
    await row.getByText('injected · call_1').waitFor();
    await page.getByRole('button', { name: 'Close the trace' }).click();
    await lose(async () => {
      for (let at = 0; at < 6; at++) await publish(`burst_${at}`, 100);
    });
    await page.getByText(/Too many events came while the connection was lost:\s+those between [\d:.]+ and [\d:.]+ are not shown\./).waitFor();
    assert.match(await sources(), /^(burst_5,?){4}$/);
    assert.equal(await page.locator('.live-table').getAttribute('aria-rowcount'), '500');
  });

  test('where earlier events cannot be loaded it says so, and loads them on request', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/inbox' });
    const { events: [event] } = await admin('POST', '/v1/events', failure(person, 'stored'));
    await page.route('**/v1/events?*', (route) => route.abort());
    await page.getByRole('link', { name: 'Live' }).first().click();
    await page.getByText('Earlier events could not be loaded: the hub cannot be reached. Try again.').waitFor();
    await page.unroute('**/v1/events?*');
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.locator(`.live-row[data-key="${event.event_id}"]`).waitFor();
    assert.equal(await page.getByRole('alert').filter({ hasText: 'could not be loaded' }).count(), 0);
  });

  test('on a phone the chosen row stays visible beside its trace', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/live', options: { viewport: { width: 390, height: 844 } } });
    await person.talk('chat');
    await page.getByText('events/s').waitFor();
    const { events } = await admin('POST', '/v1/events', Array.from({ length: 30 }, (_, at) => failure(person, `tool_${at}`)));
    const row = page.locator(`.live-row[data-key="${events[15].event_id}"]`);
    await row.getByRole('button').click();
    await page.getByRole('complementary', { name: 'Trace' }).getByText('Accepted').waitFor();
    await until('the row', () => row.evaluate((element) => {
      const [{ top, bottom }, list] = [element.getBoundingClientRect(), element.closest('bellwire-rows').getBoundingClientRect()];
      return top >= list.top - 1 && bottom <= list.bottom + 1;
    }));
  });

  test('two tabs read one live stream', async (t) => {
    const { person, context, pages: [one] } = await openConsole(t, here, { admin: true, path: '/live' });
    const streams = [];
    context.on('request', (request) => request.url().includes('/v1/events/stream') && streams.push(request.url()));
    await person.talk('chat');
    const two = await context.newPage();
    await two.goto(`${here.hub.url}/live`);
    await two.getByText('events/s').waitFor();
    await admin('POST', '/v1/events', failure(person, 'shared', { source: 'for_both' }));
    for (const page of [one, two]) await page.locator('.live-row').filter({ hasText: 'for_both' }).waitFor();
    assert.deepEqual(streams, []);
  });
});

describe('conversations', () => {
  test('a transcript of what the agent read, tables and raw, and what waits for which point', async (t) => {
    const person = await newPerson(here);
    await fillHub(here, person);
    const { page } = await openConsole(t, here, { person, path: '/conversations' });
    await page.getByRole('link', { name: /Release 2/ }).click();
    const talk = page.locator('bellwire-conversation');
    await talk.getByRole('columnheader', { name: 'percent' }).waitFor();
    await talk.getByText('nightly build - 3 tests failed').waitFor();
    // What failed or warns has an icon beside its word and colour.
    for (const [words, look] of [['task failed', 'error'], ['budget warns', 'warning']]) await talk.locator(`.label.${look}`).filter({ hasText: words }).locator('svg').first().waitFor();
    const budgets = talk.locator('article').filter({ hasText: 'budget warns' });
    await budgets.getByRole('button', { name: 'raw' }).click();
    await talk.getByText('budget_warns[2]{budget,percent,remaining}:').waitFor();
    const { items: [pending] } = await here.hub.call(person.token, 'GET', '/v1/conversations/chat/pending');
    const waits = talk.getByRole('region', { name: 'What waits' }).locator(`li[data-id="${pending.id}"]`);
    for (const text of [pending.inject_at, 'Budget Exceeded', 'budget_monitor']) await waits.getByText(text).waitFor();
    await talk.getByRole('region', { name: 'What waits' }).getByText('Context Limit').waitFor();
  });

  test('what waits for a sub-agent is shown with its name, and goes when it was read', async (t) => {
    const { person, page } = await openConsole(t, here, { path: '/conversations' });
    await person.talk('chat');
    await page.goto(`${here.hub.url}/conversations/chat`);
    await page.getByText('The agent has read nothing from Bellwire here yet.').waitFor();
    // Not among the last 100 events of the conversation.
    await admin('POST', '/v1/events', { type: 'budget.token.exceeded', source: 'budget_monitor', severity: 'critical', payload: { current: 3, limit: 2 }, conversation_id: 'chat', agent: 'scout', user_id: person.user });
    const waits = page.getByRole('region', { name: 'What waits' });
    await waits.getByText('for scout · budget_monitor').waitFor();
    for (let at = 0; at < 2; at++) await admin('POST', '/v1/events', Array.from({ length: 60 }, (_, one) => failure(person, `tool_${at}_${one}`)));
    await page.reload();
    await waits.getByText('for scout · budget_monitor').waitFor();
    await admin('POST', `/v1/conversations/chat/inject?user_id=${person.user}`, { point: 'turn_start', call_id: 'scout_1', agent: 'scout' });
    await waits.getByText('for scout').waitFor({ state: 'detached' });
  });

  test('a long transcript opens at its end; older messages come when the person scrolls up, and nothing moves', async (t) => {
    const person = await newPerson(here);
    await person.talk('chat');
    const COUNT = 1050;
    for (let at = 0; at < COUNT; at += 10) {
      for (let one = at; one < at + 10; one++) await here.hub.call(person.token, 'POST', '/v1/conversations/chat/messages', { text: `Message ${one}${'\nand a line'.repeat(one % 7)}` });
      await person.inject(`call_${at}`);
    }
    const { page, context } = await openConsole(t, here, { person, path: '/conversations' });
    const asked = [];
    context.on('request', (request) => request.url().includes('/messages?') && asked.push(request.url()));
    await page.getByRole('link', { name: /chat/ }).click();
    const list = page.locator('bellwire-conversation bellwire-rows');
    const visible = () => list.evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      const articles = [...element.querySelectorAll('article')].map((one) => [one.querySelector('.text').textContent.split('\n')[0], one.getBoundingClientRect()]);
      return articles.filter(([, box]) => box.bottom > top + 1 && box.top < bottom - 1).map(([text, box]) => [text, Math.round(box.top)]);
    });
    await until('the last message', async () => (await visible()).at(-1)?.[0] === `Message ${COUNT - 1}`);
    assert.equal(asked.length, 1, 'the newest page is enough');
    const isAtEnd = () => list.evaluate((element) => element.scrollTop + element.clientHeight >= element.scrollHeight - 2);
    assert.ok(await isAtEnd());
    // What comes is followed at the end.
    await here.hub.call(person.token, 'POST', '/v1/conversations/chat/messages', { text: 'One more' });
    await person.inject('call_more');
    await until('the new message', async () => (await visible()).at(-1)?.[0] === 'One more');
    assert.ok(await isAtEnd());
    // A message that the person opens stays where it was pressed.
    const raw = list.getByRole('article').last().getByRole('button', { name: 'raw' });
    const { y } = await raw.boundingBox();
    await raw.click();
    const table = list.getByRole('article').last().getByRole('button', { name: 'table' });
    await table.waitFor();
    await until('the larger message', async () => !(await isAtEnd()));
    assert.ok(Math.abs((await table.boundingBox()).y - y) < 2);
    await table.click();
    await until('the end again', isAtEnd);
    await here.hub.call(person.token, 'POST', '/v1/conversations/chat/messages', { text: 'And another' });
    await person.inject('call_another');
    await until('the next message', async () => (await visible()).at(-1)?.[0] === 'And another');
    // The first row of the loaded pages stays where it is when older ones come before it.
    await list.evaluate((element) => { element.scrollTop = 0; });
    const loaded = asked.length;
    await until('an older page', () => asked.length > loaded);
    await until('the place', async () => (await list.evaluate(({ scrollTop }) => scrollTop)) > 1000);
    const place = await visible();
    assert.ok(place.some(([text]) => text === 'Message 951'), JSON.stringify(place));
    // A message that comes now moves nothing.
    await here.hub.call(person.token, 'POST', '/v1/conversations/chat/messages', { text: 'While reading' });
    await person.inject('call_late');
    await page.locator('bellwire-conversation').getByText('0 pending').waitFor();
    await until('it is loaded', () => list.evaluate((element) => element.list.items.at(-1).content === 'While reading'));
    assert.deepEqual(await visible(), place);
    await until('the first message', async () => {
      await list.evaluate((element) => { element.scrollTop = 0; });
      return (await visible())[0]?.[0] === 'Message 0';
    });
    assert.ok((await list.locator('article').count()) < 80);
  });

  test('«Tell the agent…» says when it was read', async (t) => {
    const { person, page } = await openConsole(t, here, { path: '/conversations' });
    await page.getByText('No conversation yet.').waitFor();
    await person.inject('call_0');
    await page.goto(`${here.hub.url}/conversations/chat`);
    await page.getByText('The agent has read nothing from Bellwire here yet.').waitFor();
    await page.getByLabel('Tell the agent').fill('Stop, please.\n<b>Now</b>');
    await page.getByRole('button', { name: 'Send' }).click();
    const said = page.getByRole('list', { name: 'What you told the agent' });
    await said.getByText(/^sent .*, not read yet$/).waitFor();
    assert.match((await person.inject('call_1')).block, /Stop, please/);
    await said.getByText(/^read .* at after_tool$/).waitFor();
    await page.getByRole('article', { name: 'From user' }).getByText('Stop, please.').waitFor();
  });
});

describe('deliveries', () => {
  test('a dead letter comes first and is retried; a waiting one is cancelled', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/settings' });
    const address = `${person.user}@example.org`;
    await person.call('PATCH', '/settings', { email: { enabled: true, address } });
    const code = await until('the code', () => mail.mails.filter((one) => one.includes(address)).map((one) => one.match(/^\s*(\d{6})\s*$/m)?.[1]).find(Boolean));
    await person.call('POST', '/email/confirm', { code });
    mail.refuses = true;
    await person.send('Refused at first');
    const mine = async () => (await admin('GET', '/v1/deliveries')).items.filter(({ user_id: user, notification_id: id }) => user === person.user && id !== null);
    await until('the dead letter', async () => (await mine()).some(({ state }) => state === 'failed'));
    mail.refuses = false;
    await page.getByRole('link', { name: 'Deliveries' }).first().click();
    const first = page.locator('.delivery').first();
    await first.getByText('failed', { exact: true }).waitFor();
    await first.getByText('Refused at first').waitFor();
    await first.getByText(`butler · email to ${address} · ${person.user}`).waitFor();
    await first.getByText(/not wanted here/).waitFor();
    await first.getByRole('button', { name: 'Retry…' }).click();
    await first.getByText(`Send it to ${address} by email again, now?`).waitFor();
    await first.getByRole('button', { name: 'Send again' }).click();
    await page.getByText('It will be sent again.').waitFor();
    await until('the mail', () => mail.mails.some((one) => one.includes('Refused at first')));
    await person.call('PATCH', '/settings', { quiet_hours: { start: '00:00', end: '23:59', timezone: 'UTC' } });
    await person.send('Held by quiet hours');
    await until('the waiting one', async () => (await mine()).some(({ state }) => state === 'waiting'));
    await page.getByRole('button', { name: 'Waiting', exact: true }).click();
    const held = page.locator('.delivery[data-state=waiting]').first();
    await held.getByRole('button', { name: 'Cancel…' }).click();
    await held.getByRole('button', { name: 'Do not send' }).click();
    await page.getByText('It will not be sent.').waitFor();
    await until('no waiting one', async () => (await mine()).every(({ state }) => state !== 'waiting'));
    await page.goto(`${here.hub.url}/inbox`);
    await page.locator('.item').filter({ hasText: 'Held by quiet hours' }).getByText(/mail cancelled/).waitFor();
  });
});

test('deliveries: the ledger of notify by origin', async (t) => {
  const { person, page } = await openConsole(t, here, { admin: true, path: '/deliveries' });
  const origin = `origin_${person.user.replaceAll('-', '_')}`;
  const agent = await here.hub.token('agent', { user_id: person.user, origin });
  await here.hub.call(agent, 'POST', '/v1/tools/notify', { arguments: { channel: 'pigeon', message: 'Hello' } });
  await page.getByRole('button', { name: 'Ledger by origin' }).click();
  const sums = page.getByRole('row').filter({ hasText: origin });
  await sums.waitFor();
  assert.deepEqual(await sums.getByRole('cell').allTextContents().then((cells) => cells.slice(0, 5)), ['0', '0', '1', '0', '0']);
  await sums.getByRole('button', { name: 'Decisions' }).click();
  await page.getByRole('region', { name: `Decisions of ${origin}` }).getByText('refused').waitFor();
});

describe('subscribers', () => {
  test('a core one is locked and says why; another is switched off and on', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/subscribers' });
    const core = page.locator('.subscriber[data-id=tool_failure]');
    await core.getByText('Tells the agent about tool.call.failure and tool.call.timeout of severity warning or higher after its next tool call').waitFor();
    const locked = core.getByRole('switch');
    assert.equal(await locked.getAttribute('aria-disabled'), 'true');
    await locked.focus();
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Tab');
    await core.getByText('Core: it cannot be switched off, because the agent would miss what it must know.').waitFor();
    await page.keyboard.press('Enter');
    const other = page.locator('.subscriber[data-id=source_stale]').getByRole('switch');
    await other.click();
    await page.getByText('Switched off, from the next event on.').waitFor();
    assert.deepEqual((await person.call('GET', '/settings')).disabled_subscribers, ['source_stale']);
    await other.click();
    await page.getByText('Switched on, from the next event on.').waitFor();
    assert.deepEqual((await person.call('GET', '/settings')).disabled_subscribers, []);
  });

  test('a try-out renders sample events live, with the tokens', async (t) => {
    const { page } = await openConsole(t, here, { admin: true, path: '/subscribers/tool_failure' });
    const out = page.locator('bellwire-try-out');
    await out.getByText(/^tool_fails\[2\]|tool_fail:/).first().waitFor();
    await out.getByText(/\d+ tokens/).waitFor();
    const sample = { type: 'tool.call.failure', source: 'x', severity: 'error', conversation_id: 'chat', payload: { tool_name: 'my_tool', error_type: 'broken' } };
    await out.getByLabel('Sample events').fill(JSON.stringify(sample));
    await out.getByText('tool_fail: my_tool broken').waitFor();
    await out.getByLabel('Sample events').fill('{');
    await out.getByText('This is not JSON').waitFor();
  });
});

describe('playground', () => {
  test('a tool’s form makes the JSON, the answer and a curl', async (t) => {
    const { person, page } = await openConsole(t, here, { admin: true, path: '/playground/show_notification' });
    await page.getByLabel('message').fill("It's done");
    await page.getByLabel('severity').selectOption('success');
    await page.getByLabel('duration').fill('0');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByLabel('label').fill('Thanks');
    await page.getByLabel('action', { exact: false }).last().selectOption('dismiss');
    await page.locator('pre.curl').getByText(`It'\\''s done`).waitFor();
    await page.getByRole('button', { name: 'Call the tool' }).click();
    await page.locator('pre.answer').getByText('"success": true').waitFor();
    await page.locator('bellwire-toast-layer .toast').getByRole('button', { name: 'Thanks' }).waitFor();
    assert.equal((await person.call('GET', '/notifications')).items[0].message, "It's done");
  });

  test('an event is published, and leads to its trace', async (t) => {
    const { page } = await openConsole(t, here, { admin: true, path: '/playground/tool.call.failure' });
    await page.getByLabel('tool_name').fill('from_the_playground');
    await page.getByRole('button', { name: 'Publish the event' }).click();
    await page.getByRole('link', { name: 'See its trace' }).click();
    await page.getByRole('complementary', { name: 'Trace' }).getByText('from_the_playground').waitFor();
  });
});

test('overview: plots with a legend, and the same numbers as tables', async (t) => {
  const { person, page } = await openConsole(t, here, { admin: true, path: '/overview' });
  await admin('POST', '/v1/events', failure(person));
  await page.reload();
  const plot = page.locator('bellwire-plot').filter({ hasText: 'Events and verdicts' });
  await plot.locator('canvas').waitFor();
  await plot.locator('.u-legend').getByText('duplicate').waitFor();
  await plot.getByText('Table').click();
  await until('an event', async () => (await plot.getByRole('table').last().locator('tbody tr td:nth-child(2)').allTextContents()).some((text) => Number(text) > 0));
  assert.equal(await page.locator('bellwire-plot').count(), 6);
});

describe('settings', () => {
  test('quiet hours by keyboard and by dragging, saved at once, and undone', async (t) => {
    const { person, page } = await openConsole(t, here, { path: '/settings' });
    const quiet = async () => (await person.call('GET', '/settings')).quiet_hours;
    await page.getByRole('switch', { name: 'Quiet hours' }).click();
    const section = page.getByRole('region', { name: 'Quiet hours' });
    await section.getByText('Saved.').waitFor();
    assert.deepEqual([(await quiet()).start, (await quiet()).end], ['22:00', '07:00']);
    const start = page.getByRole('slider', { name: 'Quiet from' });
    await start.focus();
    await page.keyboard.press('ArrowLeft');
    await until('21:45', async () => (await quiet()).start === '21:45');
    await page.keyboard.press('PageUp');
    await until('22:45', async () => (await quiet()).start === '22:45');
    const band = await page.locator('.band').boundingBox();
    const end = await page.getByRole('slider', { name: 'Quiet until' }).boundingBox();
    await page.mouse.move(end.x + end.width / 2, end.y + end.height / 2);
    await page.mouse.down();
    await page.mouse.move(end.x + end.width / 2 + band.width / 24, end.y + 10, { steps: 4 });
    await page.mouse.up();
    await until('08:00', async () => (await quiet()).end === '08:00');
    await section.getByText(/until 08:00|resumes at 08:00/).waitFor();
    await section.getByRole('button', { name: 'Undo' }).click();
    await until('07:00', async () => (await quiet()).end === '07:00');
  });

  test('an address is confirmed by the mailed code; a wrong one says so beside it', async (t) => {
    const { person, page } = await openConsole(t, here, { path: '/settings' });
    const address = `${person.user}@example.org`;
    await page.getByLabel('Address').fill(address);
    await page.getByRole('button', { name: 'Save address' }).click();
    await page.getByText('not confirmed yet').waitFor();
    const code = await until('the code', () => mail.mails.filter((one) => one.includes(address)).map((one) => one.match(/^\s*(\d{6})\s*$/m)?.[1]).find(Boolean));
    await page.getByLabel('The code from the mail').fill(code === '000000' ? '111111' : '000000');
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByRole('region', { name: 'Email' }).getByText(/^Not confirmed:/).waitFor();
    await page.getByLabel('The code from the mail').fill(code);
    await page.getByRole('button', { name: 'Confirm' }).click();
    await page.getByText('confirmed', { exact: true }).waitFor();
    assert.equal((await person.call('GET', '/settings')).email.confirmed, true);
    const section = page.getByRole('region', { name: 'Email' });
    const before = mail.mails.length;
    await page.getByRole('button', { name: 'Send a test mail' }).click();
    await until('the test mail', () => mail.mails.length > before);
    await section.getByRole('status').locator('.saved').waitFor();
    // The browser accepts an address of any length; the hub does not.
    await page.getByLabel('Address').fill(`${'a'.repeat(250)}@example.org`);
    await page.getByRole('button', { name: 'Save address' }).click();
    await section.getByText('Not saved: email.address has 262 characters; 1 to 254 are allowed').waitFor();
    assert.equal((await person.call('GET', '/settings')).email.address, address);
  });

  test('Telegram is paired by the code, with a link and a QR code', async (t) => {
    const { person, page } = await openConsole(t, here, { path: '/settings' });
    await page.getByRole('button', { name: 'Pair a chat' }).click();
    await page.getByRole('img', { name: 'QR code of the link' }).waitFor();
    const code = (await page.locator('.pairing pre').textContent()).trim();
    const link = await page.getByRole('link', { name: 'Open the chat' }).getAttribute('href');
    assert.match(code, /^\/start [\w-]{22}$/);
    assert.ok(link.endsWith(`?start=${code.slice(7)}`), link);
    await telegram.type(4711, code);
    await page.getByText('paired', { exact: true }).waitFor();
    await page.getByText('Paired.').waitFor();
    assert.deepEqual((await person.call('GET', '/settings')).telegram, { enabled: true, chat_id: 4711, paired: true });
    await page.getByRole('switch', { name: 'Write to me on Telegram' }).click();
    await until('switched off', async () => !(await person.call('GET', '/settings')).telegram.enabled);
  });

  test('muted origins, toasts and the theme', async (t) => {
    const { person, page } = await openConsole(t, here, { path: '/settings' });
    await page.getByLabel('Origin', { exact: true }).fill('spammer');
    await page.getByRole('button', { name: 'Mute', exact: true }).click();
    await page.getByRole('button', { name: 'Unmute spammer' }).waitFor();
    await page.getByRole('switch', { name: 'Show toasts' }).click();
    await until('both', async () => {
      const { muted_origins: muted, toasts } = await person.call('GET', '/settings');
      return muted.join() === 'spammer' && !toasts.enabled;
    });
    await page.getByRole('button', { name: 'Unmute spammer' }).click();
    await page.getByText('None.').waitFor();
    await page.getByRole('radio', { name: 'Dark' }).check();
    const dark = () => page.locator('bellwire-console').evaluate((element) => getComputedStyle(element).getPropertyValue('--bg'));
    await until('the dark theme', async () => (await dark()).trim() === '#141413');
    await page.reload();
    await page.getByRole('radio', { name: 'Dark' }).waitFor();
    assert.equal((await dark()).trim(), '#141413');
  });
});
