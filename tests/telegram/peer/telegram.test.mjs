// A second opinion on getUpdates and sendMessage: the hub against telegram-test-api, which knows nothing of our own stand-in.
// It differs from Telegram in one way that matters here: getUpdates never waits for an update, it answers at once.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import TelegramServer from 'telegram-test-api';
import { startHub, until } from './hub.mjs';

const BOT = '7001:peer-Token_0123456789abcdefghijklm';
const ADA = 1815;
let telegram, ada, hub, agent;

/** A port that is free now. */
const freePort = () =>
  new Promise((done) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => done(port));
    });
  });

/** What the bot has sent, oldest first. */
const sent = () => telegram.storage.botMessages.map((one) => ({ id: one.messageId, ...one.message }));

const sentSoFar = (count) => until(`${count} messages of the bot`, () => sent().length >= count && sent());

const tool = (name, args) =>
  hub.call(agent, 'POST', `/v1/tools/${name}`, { arguments: args, context: { conversation_id: 'chat' } });

let steps = 0;
const nextStep = () =>
  until('words of Ada', async () => {
    const body = { point: 'after_tool', call_id: `call_${++steps}` };
    return (await hub.call(agent, 'POST', '/v1/conversations/chat/inject', body)).block;
  });

before(async () => {
  const port = await freePort();
  telegram = new TelegramServer({ port, host: '127.0.0.1' });
  await telegram.start();
  ada = telegram.getClient(BOT, { userId: ADA, chatId: ADA });
  hub = await startHub({
    BELLWIRE_TELEGRAM_TOKEN: BOT,
    BELLWIRE_TELEGRAM_API_URL: `http://127.0.0.1:${port}`,
    BELLWIRE_TELEGRAM_CHAT_INTERVAL_MS: '0',
  });
  agent = await hub.token('agent');
  await hub.call(agent, 'PUT', '/v1/conversations/chat', { user_id: 'ada' });
});

after(async () => {
  await hub?.stop();
  await telegram?.stop();
});

test('a command pairs the chat, and the bot answers there', async () => {
  const { code, link } = await hub.call(hub.admin, 'POST', '/v1/users/ada/telegram/pair');
  assert.equal(link, `https://t.me/TestNameBot?start=${code}`);
  await ada.sendCommand(ada.makeCommand(`/start ${code}`));
  const [said] = await sentSoFar(1);
  assert.equal(said.chat_id, ADA);
  assert.match(said.text, /^This chat is connected: notifications for ada/);
});

test('a notification is one message with its sender in bold', async () => {
  await tool('send_notification', { message: 'The train is late' });
  const said = (await sentSoFar(2))[1];
  assert.equal(said.text, '[butler] The train is late');
  assert.deepEqual(said.entities, [{ type: 'bold', offset: 0, length: 8 }]);
  assert.equal(said.parse_mode, undefined);
});

test('a long text comes in parts that Telegram takes', async () => {
  const long = 'a word, an emoji 😀, '.repeat(500);
  const answer = await tool('notify', { channel: 'telegram', message: long });
  const parts = (await sentSoFar(5)).slice(2);
  assert.deepEqual(answer.delivery, { channel: 'telegram', delivery_id: String(parts[0].id) });
  for (const { text } of parts) assert.ok(text.length > 0 && text.length <= 4096, `${text.length} UTF-16 units`);
  const squeezed = (text) => text.replace(/\s/g, '');
  assert.equal(squeezed(parts.map(({ text }) => text).join('')), squeezed(`[butler] ${long}`));
});

test('words of a person reach the agent once, and its reply names them', async () => {
  await ada.sendMessage(ada.makeMessage('when do we leave?'));
  const block = await nextStep();
  assert.match(block, /text: when do we leave\?/);
  const thread = /source_thread_identity=(\d+):(\d+)/.exec(block);
  assert.equal(thread[1], String(ADA));
  const answer = await tool('notify', { channel: 'telegram', intent: 'reply', message: 'At noon' });
  assert.equal(answer.status, 'ok', JSON.stringify(answer));
  const reply = (await sentSoFar(6))[5];
  assert.deepEqual([reply.text, reply.reply_parameters], ['[butler] At noon', { message_id: Number(thread[2]) }]);
  await ada.sendMessage(ada.makeMessage('and when is that?', { reply_to_message: { message_id: reply.id } }));
  const next = await nextStep();
  assert.match(next, /text: and when is that\?/);
  assert.doesNotMatch(next, /when do we leave/);
});

test('a server that does not wait for updates is not asked all the time', async () => {
  let polls = 0;
  const count = (request) => (polls += request.url.endsWith('/getUpdates') ? 1 : 0);
  telegram.server.on('request', count);
  await new Promise((later) => setTimeout(later, 2500));
  telegram.server.off('request', count);
  assert.ok(polls >= 1 && polls <= 4, `${polls} polls in 2.5 seconds`);
});
