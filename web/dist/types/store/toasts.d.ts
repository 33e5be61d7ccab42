import { type Notification, type Position } from '../notification.js';
/** How many toasts a position shows before it is expanded. */
export declare const VISIBLE_MAX = 3;
/** How many toasts a page keeps. Beyond it, the oldest one that may go by itself goes; the inbox still has it. */
export declare const KEPT_MAX = 50;
/** How long a toast says that its prompt was sent, in milliseconds. */
export declare const SENT_MS = 1200;
/** How long a toast takes to appear and to go, in milliseconds. */
export declare const FADE_MS = 150;
/**
 * `open`: it waits for the person or its timer. `busy`: a request is on its way, or failed and can be retried, so no timer
 * runs. `done`: it says how the request ended. `leaving`: it fades.
 */
export type Phase = 'open' | 'busy' | 'done' | 'leaving';
export interface Toast {
    readonly item: Notification;
    readonly phase: Phase;
    /** Milliseconds until the phase ends, counted from `since` where the timer runs; null = it does not end by itself. */
    readonly remaining: number | null;
    /** When the timer started; null = it is paused. */
    readonly since: number | null;
}
export interface Deck {
    /** In the order of arrival. */
    readonly toasts: readonly Toast[];
    /** The positions that the pointer or the focus is in. */
    readonly held: readonly Position[];
    readonly tabHidden: boolean;
}
export declare const EMPTY_DECK: Deck;
/** Adds a toast, or updates the text of the one with the same id. */
export declare function add(deck: Deck, item: Notification, now: number): Deck;
/** Starts to fade a toast. */
export declare function leave(deck: Deck, id: string, now: number): Deck;
/** Removes a toast without a trace. */
export declare function remove(deck: Deck, id: string, now: number): Deck;
/** A request about the toast began, or failed: it stays until the person decides. */
export declare function busy(deck: Deck, id: string, now: number): Deck;
/** The request ended well: the toast says so and goes. */
export declare function done(deck: Deck, id: string, now: number): Deck;
export declare function hold(deck: Deck, position: Position, held: boolean, now: number): Deck;
export declare function hideTab(deck: Deck, tabHidden: boolean, now: number): Deck;
/** Ends the phases whose time is over. */
export declare function tick(deck: Deck, now: number): Deck;
/** When `tick` has something to do. */
export declare function wakesAt(deck: Deck): number | null;
/** The milliseconds that a toast still has; null = it does not go by itself. */
export declare function timeLeft({ remaining, since }: Toast, now: number): number | null;
export interface Stack {
    readonly shown: readonly Toast[];
    /** How many are behind those that are shown. */
    readonly behind: number;
    readonly expanded: boolean;
}
/** What a position shows, from the front to the back. */
export declare function stack(deck: Deck, position: Position): Stack;
/** The toast that arrived last and is not about to go. */
export declare function newest(deck: Deck): Toast | null;
export declare function find(deck: Deck, id: string): Toast | null;
