import { type Notification } from '../notification.ts';
import type { Filter } from '../store/inbox.ts';
import type { Access } from './access.ts';
import { type StreamStatus } from './stream.ts';
import { type WireSettings } from './wire.ts';
export interface Page {
    readonly items: readonly Notification[];
    readonly cursor: string | null;
}
/** What the stream says. */
export type Change = {
    readonly kind: 'toast' | 'notification' | 'updated';
    readonly item: Notification;
} | {
    readonly kind: 'unread';
    readonly count: number;
};
export interface PersonEvents {
    change(change: Change): void;
    /** The changes begin now: load what was before. */
    fresh(): void;
    status(status: StreamStatus): void;
    /** Another tab has shown this toast for its time. */
    hide(id: string): void;
}
export declare class Person {
    #private;
    constructor(user: string, access: Access, shareTabs: boolean, events: PersonEvents);
    close(): void;
    /** Whether this tab reads the stream. */
    get leads(): boolean;
    /** Tells the other tabs that a toast was shown for its time. */
    hidden(id: string): void;
    list(filter: Filter, cursor: string | null, limit: number): Promise<Page>;
    settings(): Promise<WireSettings>;
    read(id: string, read: boolean): Promise<Notification | null>;
    dismiss(id: string): Promise<Notification | null>;
    /** Takes back a dismissal. The hub refuses it where a prompt was pressed. */
    restore(id: string): Promise<Notification | null>;
    readAll(): Promise<void>;
    /** Presses a button. The hub answers a repeated press of the same button with the first answer. */
    press(id: string, index: number): Promise<void>;
}
