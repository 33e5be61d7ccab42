import type { Access } from './client/access.js';
import { type Notification, type Position } from './notification.js';
import { type Filter, type Inbox } from './store/inbox.js';
import { type Readable } from './store/observable.js';
import { type Request } from './store/requests.js';
import * as deck from './store/toasts.js';
export interface PromptContext {
    readonly notification: Notification;
    readonly label: string;
    /** Whether the hub has already sent the prompt to the agent. If not, the page must. */
    readonly delivered: boolean;
}
export type PromptHandler = (prompt: string, context: PromptContext) => void | Promise<void>;
export interface BellwireOptions extends Access {
    /** Whose notifications these are. Without it the page has no hub and shows only what it finds itself. */
    readonly user?: string;
    /** Called when the person presses a `prompt` button. */
    readonly onPrompt?: PromptHandler | undefined;
    /** Whether the tabs of this origin share one stream: all of a person, or those with the same text. Default: all. */
    readonly shareTabs?: boolean | string;
    /** How many items of the inbox are kept in memory. Default: 1000. */
    readonly itemsMax?: number;
    /** How many items are loaded at once, at most 100. Default: 20. */
    readonly pageSize?: number;
}
/** Called with each new notification of the hub. `leads`: this tab reads the stream for all tabs. */
export type ArrivalListener = (item: Notification, leads: boolean) => void;
export declare class Bellwire {
    #private;
    constructor(options?: BellwireOptions);
    /** Whether the notifications come from a hub. */
    get hasHub(): boolean;
    get inbox(): Readable<Inbox>;
    get toasts(): Readable<deck.Deck>;
    get requests(): Readable<ReadonlyMap<string, Request>>;
    get handler(): Readable<PromptHandler | null>;
    get onPrompt(): PromptHandler | null;
    set onPrompt(handler: PromptHandler | null);
    /** Ends the connection and the timers. */
    close(): void;
    /** Shows a toast of the page. Returns false if its id was shown before. */
    show(item: Notification): boolean;
    /** Why a button cannot be pressed; null = it can. */
    blocked(item: Notification, index: number): 'no_handler' | null;
    /** Presses a button. */
    press(id: string, index: number): Promise<void>;
    /** Dismisses a notification everywhere, by its × or by a button. */
    dismiss(id: string, index?: number | null): Promise<void>;
    read(id: string, read: boolean): Promise<void>;
    /** Takes back a dismissal. */
    restore(id: string): Promise<void>;
    /** Calls the listener with each notification that arrives. Returns the function that ends it. */
    arrived(listener: ArrivalListener): () => void;
    /** Repeats the request that failed. */
    retry(id: string): Promise<void>;
    readAll(): Promise<void>;
    /** Shows another part of the inbox. */
    choose(filter: Filter): void;
    /** Loads the next page of the list, or the first one. */
    more(): Promise<void>;
    /** The pointer or the focus entered a position, or left it. */
    hold(position: Position, held: boolean): void;
}
