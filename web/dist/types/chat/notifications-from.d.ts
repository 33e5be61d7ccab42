import type { Bellwire } from '../bellwire.js';
import { type Notification } from '../notification.js';
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
export declare function notificationsFrom(stream?: ChatStream | null, options?: ChatOptions): ChatNotifications;
/** The notification of a result; null if the result has none. */
export declare function readResult(output: unknown): Notification | null;
