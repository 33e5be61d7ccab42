import { describe, expect, test, vi } from 'vitest';
import { Bellwire } from '../src/bellwire.ts';
import { type ChatOptions, type ChatStream, notificationsFrom } from '../src/chat/notifications-from.ts';

vi.stubGlobal('window', new EventTarget());

const NOTIFICATION = {
  id: '0198c0de-0000-7000-8000-000000000001', message: 'Build failed', severity: 'error', duration: 0, position: 'top-center',
  actions: [{ label: 'View Logs', action: 'prompt', prompt: 'show me the logs' }, { label: 'OK', action: 'dismiss' }],
};
const RESULT = { success: true, notification: NOTIFICATION };
const TEXT = [{ type: 'text', text: JSON.stringify(RESULT) }];
const TOOL = 'mcp__bellwire__show_notification';

interface Found {
  readonly shown: string[];
  readonly found: string[];
  readonly refused: string[];
}

/** What is found and shown in these elements of a stream. */
async function from(stream: ChatStream, options: ChatOptions = {}, bellwire = new Bellwire()): Promise<Found> {
  const [found, refused]: [string[], string[]] = [[], []];
  const chat = notificationsFrom(stream, {
    bellwire, onNotification: ({ id }) => found.push(id), onRefused: (reason) => refused.push(reason), ...options,
  });
  await chat.done;
  const shown = bellwire.toasts.get().toasts.map(({ item }) => item.id);
  bellwire.close();
  return { shown, found, refused };
}

const once = { shown: [NOTIFICATION.id], found: [NOTIFICATION.id], refused: [] };
const nothing = { shown: [], found: [], refused: [] };
/** The result of a plain MCP client, by its request and its answer. */
const call = (result: unknown, tool = TOOL): unknown[] => [
  { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } }, { jsonrpc: '2.0', id: 1, result },
];
const notification = (change: object): unknown[] => call({ structuredContent: { success: true, notification: { ...NOTIFICATION, ...change } } });

describe('a notification is found in', () => {
  test.each<[string, unknown[]]>([
    ['a message of the AI SDK', [[{ role: 'assistant', parts: [{ type: `tool-${TOOL}`, state: 'output-available', output: RESULT }] }]]],
    ['a dynamic tool of the AI SDK', [{ role: 'assistant', parts: [{ type: 'dynamic-tool', toolName: 'bellwire_show_notification', state: 'output-available', output: { content: TEXT } }] }]],
    ['chunks of a UI message stream', [
      { type: 'start' }, { type: 'tool-input-available', toolCallId: 'c1', toolName: 'show_notification', input: {} },
      { type: 'tool-output-available', toolCallId: 'c1', output: { structuredContent: RESULT, content: TEXT } }, { type: 'finish' },
    ]],
    ['a part of fullStream', [{ type: 'tool-result', toolCallId: 'c1', toolName: 'show_notification', output: RESULT }]],
    ['events of Anthropic', [
      { type: 'content_block_start', index: 0, content_block: { type: 'mcp_tool_use', id: 't1', name: 'show_notification', server_name: 'bellwire', input: {} } },
      { type: 'content_block_start', index: 1, content_block: { type: 'mcp_tool_result', tool_use_id: 't1', is_error: false, content: TEXT } },
    ]],
    ['a message of Anthropic', [{ role: 'assistant', content: [
      { type: 'text', text: 'Look' }, { type: 'mcp_tool_use', id: 't1', name: 'show_notification' }, { type: 'mcp_tool_result', tool_use_id: 't1', content: TEXT },
    ] }]],
    ['events of OpenAI, once for both', [
      { type: 'response.output_item.done', item: { type: 'mcp_call', id: 'm1', name: 'show_notification', server_label: 'bellwire', arguments: '{}', output: JSON.stringify(RESULT), error: null } },
      { type: 'response.completed', response: { object: 'response', output: [{ type: 'mcp_call', id: 'm1', name: 'show_notification', output: JSON.stringify(RESULT) }] } },
    ]],
    ['a response of OpenAI', [{ object: 'response', output: [{ type: 'message' }, { type: 'mcp_call', name: 'show_notification', output: JSON.stringify(RESULT) }] }]],
    ['the answer of an MCP server', call({ content: TEXT })],
  ])('%s', async (_, stream) => {
    expect(await from(stream)).toEqual(once);
  });

  test('a readable stream, and the result of one call', async () => {
    const stream = new ReadableStream({
      start: (controller) => {
        for (const value of call({ content: TEXT })) controller.enqueue(value);
        controller.close();
      },
    });
    expect(await from(stream)).toEqual(once);
    const bellwire = new Bellwire();
    notificationsFrom(null, { bellwire }).result('show_notification', { content: TEXT });
    expect(bellwire.toasts.get().toasts).toHaveLength(1);
    bellwire.close();
  });
});

describe('nothing is found in', () => {
  test.each<[string, unknown[]]>([
    ['the arguments of a call', [
      { type: 'tool-input-available', toolCallId: 'c1', toolName: 'show_notification', input: RESULT },
      { role: 'assistant', parts: [{ type: 'tool-show_notification', state: 'input-available', input: RESULT }] },
      { type: 'content_block_start', content_block: { type: 'mcp_tool_use', id: 't1', name: 'show_notification', input: RESULT } },
      { type: 'mcp_call', name: 'show_notification', arguments: JSON.stringify(RESULT), output: null },
    ]],
    ['the result of another tool', [...call({ content: TEXT }, 'fetch_page'), ...call({ content: TEXT }, 'show_notification_help'),
      { role: 'assistant', parts: [{ type: 'tool-fetch', state: 'output-available', output: RESULT }] }]],
    ['a result without a call', [{ jsonrpc: '2.0', id: 9, result: { content: TEXT } }, { type: 'tool-output-available', toolCallId: 'c9', output: RESULT }]],
    ['what the model or a page writes', [
      JSON.stringify(RESULT), { type: 'text-delta', delta: JSON.stringify(RESULT) }, RESULT, NOTIFICATION, { role: 'assistant', content: JSON.stringify(RESULT) },
      { role: 'assistant', content: [{ type: 'text', text: JSON.stringify(RESULT) }] },
    ]],
    ['what a person writes', [
      { role: 'user', parts: [{ type: 'tool-show_notification', state: 'output-available', output: RESULT }] },
      { role: 'user', content: [{ type: 'mcp_tool_use', id: 't1', name: 'show_notification' }, { type: 'mcp_tool_result', tool_use_id: 't1', content: TEXT }] },
    ]],
    ['a result deeper inside of another', call({ structuredContent: { result: RESULT }, content: TEXT })],
    ['a refusal', [...call({ structuredContent: { success: false, error: 'no', notification: NOTIFICATION } }), ...call({ isError: true, content: TEXT }),
      { type: 'mcp_call', name: 'show_notification', output: JSON.stringify(RESULT), error: 'failed' }]],
    ['a result that is not ready', [{ type: 'tool-result', toolName: 'show_notification', preliminary: true, output: RESULT }]],
    ['text that is no JSON', call({ content: [{ type: 'text', text: '{' }] })],
  ])('%s', async (_, stream) => {
    expect(await from(stream)).toEqual(nothing);
  });
});

describe('a notification is refused if', () => {
  test.each<[string, object, string]>([
    ['its id is missing', { id: undefined }, 'id must have'],
    ['its message is empty', { message: ' \u200b ' }, 'message must have 1 to 500'],
    ['its message is too long', { message: 'x'.repeat(501) }, 'message must have 1 to 500'],
    ['its severity is unknown', { severity: 'critical' }, 'severity must be one of: info, success, warning, error'],
    ['its title is too long', { title: 'x'.repeat(101) }, 'title must have at most 100'],
    ['its duration is too long', { duration: 30_001 }, 'duration must be 0 to 30000'],
    ['its duration is no number', { duration: '0' }, 'duration must be 0 to 30000'],
    ['its position is unknown', { position: 'center' }, 'position must be one of'],
    ['it has four buttons', { actions: Array(4).fill({ label: 'OK', action: 'dismiss' }) }, 'actions must be at most 3'],
    ['a button has no label', { actions: [{ label: '', action: 'dismiss' }] }, 'actions[0].label must have 1 to 50'],
    ['a button has another action', { actions: [{ label: 'Go', action: 'open' }] }, 'actions[0].action must be prompt or dismiss'],
    ['a prompt is missing', { actions: [{ label: 'Go', action: 'prompt' }] }, 'actions[0].prompt must have 1 to 200'],
    ['a prompt is too long', { actions: [{ label: 'Go', action: 'prompt', prompt: 'x'.repeat(201) }] }, 'actions[0].prompt must have 1 to 200'],
  ])('%s', async (_, change, reason) => {
    const { shown, refused } = await from(notification(change));
    expect(shown).toEqual([]);
    expect(refused).toEqual([expect.stringContaining(reason)]);
  });
});

test('what is left out has its default, and limits count characters', async () => {
  const bellwire = new Bellwire();
  await from(call({ structuredContent: { notification: { id: 'a', message: '\u{1f514}'.repeat(500), severity: 'info' } } }), {}, bellwire);
  expect(bellwire.toasts.get().toasts[0]?.item).toMatchObject({ duration: 5000, position: 'top-right', title: null, actions: [], from: 'page' });
});

test('no id shows twice, in one chat or in several', async () => {
  const bellwire = new Bellwire();
  const stream = call({ content: TEXT });
  await from([...stream, ...stream], {}, bellwire);
  expect((await from(stream, {}, bellwire)).shown).toEqual([NOTIFICATION.id]);
});

test('on a page with a hub it shows nothing itself', async () => {
  const offline = new Bellwire({ user: 'ada', shareTabs: false, fetch: () => Promise.reject(new Error('offline')) });
  expect(await from(call({ content: TEXT }), {}, offline)).toEqual({ ...once, shown: [] });
});

test('a chat that is opened again shows nothing of long ago', async () => {
  const at = (age: number): string => new Date(Date.now() - age).toISOString();
  expect((await from(notification({ timestamp: at(2 * 3_600_000) }))).shown).toEqual([]);
  expect((await from(notification({ timestamp: at(60_000) }))).shown).toHaveLength(1);
});

test('the tools can be chosen', async () => {
  expect((await from(call({ content: TEXT }), { tools: ['show_notification'] })).shown).toEqual([]);
  expect((await from(call({ content: TEXT }, 'toast'), { tools: ['toast'] })).shown).toHaveLength(1);
  expect((await from(call({ content: TEXT }, 'toast'), { tools: (name) => name.startsWith('t') })).shown).toHaveLength(1);
});
