import type { NotificationType } from './notification.js';
import type { Problem } from './problem.js';
export declare const english: {
    /** The name of the region that has the toasts, and of the inbox. */
    notifications: string;
    severity: Readonly<Record<NotificationType, string>>;
    dismiss: string;
    more: string;
    less: string;
    /** How many toasts are behind the visible ones. */
    behind: (count: number) => string;
    behindLabel: (count: number) => string;
    /** What a button sends. With several such buttons, each is named. */
    sends: (prompt: string) => string;
    sendsBy: (label: string, prompt: string) => string;
    sending: string;
    sent: string;
    retry: string;
    answered: (label: string) => string;
    /** Why a button is disabled. */
    noHandler: string;
    problem: ({ code, detail }: Problem) => string;
    /** What a screen reader hears after the text of a toast with buttons. */
    announceActions: (count: number, hotkey: string) => string;
    bell: (unread: number) => string;
    badge: (unread: number) => string;
    close: string;
    markRead: string;
    markUnread: string;
    markAllRead: string;
    unreadMark: string;
    show: string;
    filterState: {
        unread: string;
        all: string;
        dismissed: string;
    };
    filterType: string;
    anyType: string;
    loadMore: string;
    loading: string;
    empty: {
        unread: string;
        all: string;
        dismissed: string;
    };
    listProblem: ({ code, detail }: Problem) => string;
    reconnecting: string;
    signedOut: string;
    noHub: string;
    /** What became of it outside: `mail sent 07:00`. */
    delivery: (channel: string, state: string, at: string, reason: string | null) => string;
};
export type Strings = typeof english;
export declare function withStrings(replaced: Partial<Strings> | null | undefined): Strings;
