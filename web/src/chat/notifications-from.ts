// Toasts from the tool calls that a chat page streams anyway: no second connection, and no hub needed.
import type { Bellwire } from '../bellwire.ts';
import { type Notification, isRecord } from '../notification.ts';
import { page } from '../page.ts';
import { ShownIds } from '../store/shown.ts';
import { Refused, checkNotification } from './check.ts';
import { ToolResults } from './tool-results.ts';

const TOOL = /(?:^|[^A-Za-z0-9])show_notification$/u;
/** The longest text of a result that is parsed, in UTF-16 units. */
const TEXT_MAX = 65_536;
/** A notification that is older than this belongs to a chat that was opened again; in milliseconds. */
const AGE_MAX = 3_600_000;

export interface ChatOptions {
  /** The names of the tools whose results are shown. Default: `show_notification`, also behind the prefix of a server. */
  readonly tools?: readonly string[] | ((name: string) => boolean);
  /** Where they are shown. Default: the page's own. */
  readonly bellwire?: Bellwire;
  /** Called with every notification that was found for the first time. With a hub, the hub shows it, or keeps it muted. */
  readonly onNotification?: (notification: Notification) => void;
  /** Called with the reason why a result was not shown. */
  readonly onRefused?: (reason: string) => void;
}

export type ChatStream = AsyncIterable<unknown> | Iterable<unknown> | ReadableStream<unknown>;

export interface ChatNotifications {
  /** Takes an element of a stream, a message, or all messages of the chat. Each notification is shown once. */
  push(value: unknown): void;
  /** Takes the result of one call, such as that of an MCP client. */
  result(tool: string, result: unknown): void;
  /** Resolves when the stream has ended. */
  readonly done: Promise<void>;
}

/** Shows the notifications in the results of `show_notification`. */
export function notificationsFrom(stream?: ChatStream | null, options: ChatOptions = {}): ChatNotifications {
  const results = new ToolResults();
  const seen = new ShownIds();
  const wanted = matcher(options.tools);
  const result = (tool: string, output: unknown): void => {
    if (!wanted(tool)) return;
    try {
      const notification = readResult(output);
      if (!notification || seen.has(notification.id)) return;
      seen.add(notification.id);
      show(notification, options);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      options.onRefused?.(error.message);
    }
  };
  const push = (value: unknown): void => {
    for (const { tool, output } of results.in(value)) result(tool, output);
  };
  const done = stream ? read(stream, push) : Promise.resolve();
  done.catch(() => undefined);
  return { push, result, done };
}

function show(notification: Notification, { bellwire, onNotification }: ChatOptions): void {
  onNotification?.(notification);
  const target = bellwire ?? page.current();
  const age = Date.now() - Date.parse(notification.created_at);
  // The hub has the same notification, and knows what the person muted.
  if (!target.hasHub && !(age > AGE_MAX)) target.show(notification);
}

function matcher(tools: ChatOptions['tools']): (name: string) => boolean {
  if (typeof tools === 'function') return tools;
  return tools ? (name) => tools.includes(name) : (name) => TOOL.test(name);
}

/** The notification of a result; null if the result has none. */
export function readResult(output: unknown): Notification | null {
  const result = resultObject(output);
  if (!result || result.success === false || result.notification === undefined) return null;
  return checkNotification(result.notification);
}

/** The object that the tool returned, out of the forms in which chats carry it. */
function resultObject(output: unknown): Record<string, unknown> | null {
  if (typeof output === 'string') return parsed(output);
  if (Array.isArray(output)) return firstText(output);
  if (!isRecord(output) || output.isError === true) return null;
  if (isRecord(output.structuredContent)) return output.structuredContent;
  if (Array.isArray(output.content)) return firstText(output.content);
  return output;
}

/** MCP: a result's first text is the same JSON as its structured content. */
function firstText(content: readonly unknown[]): Record<string, unknown> | null {
  const block = content.filter(isRecord).find(({ type }) => type === 'text');
  return typeof block?.text === 'string' ? parsed(block.text) : null;
}

function parsed(text: string): Record<string, unknown> | null {
  if (text.length > TEXT_MAX) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

async function read(stream: ChatStream, push: (value: unknown) => void): Promise<void> {
  if (!(stream instanceof ReadableStream)) {
    for await (const value of stream) push(value);
    return;
  }
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    push(value);
  }
}
