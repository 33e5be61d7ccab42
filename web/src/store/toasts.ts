// The toasts of a page as a pure state machine: every function takes the state and the time and returns the next state.
//
// A timer runs only while its toast can be read: it is among the first of its position, the pointer and the focus are
// elsewhere, and the tab is visible. A paused timer keeps its remaining time.
import { type Notification, POSITIONS, type Position, isPersistent } from '../notification.ts';

/** How many toasts a position shows before it is expanded. */
export const VISIBLE_MAX = 3;
/** How many toasts a page keeps. Beyond it, the oldest one that may go by itself goes; the inbox still has it. */
export const KEPT_MAX = 50;
/** How long a toast says that its prompt was sent, in milliseconds. */
export const SENT_MS = 1200;
/** How long a toast takes to appear and to go, in milliseconds. */
export const FADE_MS = 150;

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

export const EMPTY_DECK: Deck = { toasts: [], held: [], tabHidden: false };

/** Adds a toast, or updates the text of the one with the same id. */
export function add(deck: Deck, item: Notification, now: number): Deck {
  if (find(deck, item.id)) return change(deck, item.id, now, (toast) => ({ ...toast, item }));
  const toast: Toast = { item, phase: 'open', remaining: item.duration || null, since: null };
  return timed({ ...deck, toasts: withinBound([...deck.toasts, toast]) }, now);
}

/** Starts to fade a toast. */
export function leave(deck: Deck, id: string, now: number): Deck {
  return change(deck, id, now, (toast) => (toast.phase === 'leaving' ? toast : phase(toast, 'leaving', FADE_MS)));
}

/** Removes a toast without a trace. */
export function remove(deck: Deck, id: string, now: number): Deck {
  if (!find(deck, id)) return deck;
  return timed({ ...deck, toasts: deck.toasts.filter((toast) => toast.item.id !== id) }, now);
}

/** A request about the toast began, or failed: it stays until the person decides. */
export function busy(deck: Deck, id: string, now: number): Deck {
  return change(deck, id, now, (toast) => phase(toast, 'busy', null));
}

/** The request ended well: the toast says so and goes. */
export function done(deck: Deck, id: string, now: number): Deck {
  return change(deck, id, now, (toast) => phase(toast, 'done', SENT_MS));
}

export function hold(deck: Deck, position: Position, held: boolean, now: number): Deck {
  if (deck.held.includes(position) === held) return deck;
  const others = deck.held.filter((other) => other !== position);
  return timed({ ...deck, held: held ? [...others, position] : others }, now);
}

export function hideTab(deck: Deck, tabHidden: boolean, now: number): Deck {
  return deck.tabHidden === tabHidden ? deck : timed({ ...deck, tabHidden }, now);
}

/** Ends the phases whose time is over. */
export function tick(deck: Deck, now: number): Deck {
  const ended = (toast: Toast): boolean => toast.since !== null && timeLeft(toast, now) === 0;
  if (!deck.toasts.some(ended)) return deck;
  const kept = deck.toasts.filter((toast) => !(ended(toast) && toast.phase === 'leaving'));
  return timed({ ...deck, toasts: kept.map((toast) => (ended(toast) ? phase(toast, 'leaving', FADE_MS) : toast)) }, now);
}

/** When `tick` has something to do. */
export function wakesAt(deck: Deck): number | null {
  const ends = deck.toasts.flatMap(({ remaining, since }) => (remaining !== null && since !== null ? [since + remaining] : []));
  return ends.length > 0 ? Math.min(...ends) : null;
}

/** The milliseconds that a toast still has; null = it does not go by itself. */
export function timeLeft({ remaining, since }: Toast, now: number): number | null {
  return remaining === null ? null : Math.max(0, remaining - (since === null ? 0 : now - since));
}

export interface Stack {
  readonly shown: readonly Toast[];
  /** How many are behind those that are shown. */
  readonly behind: number;
  readonly expanded: boolean;
}

/** What a position shows, from the front to the back. */
export function stack(deck: Deck, position: Position): Stack {
  const expanded = deck.held.includes(position);
  const toasts = ordered(deck, position);
  const shown = expanded ? toasts : front(toasts);
  return { shown, behind: toasts.length - shown.length, expanded };
}

/** The toast that arrived last and is not about to go. */
export function newest(deck: Deck): Toast | null {
  return deck.toasts.findLast((toast) => toast.phase !== 'leaving') ?? null;
}

export function find(deck: Deck, id: string): Toast | null {
  return deck.toasts.find((toast) => toast.item.id === id) ?? null;
}

/** Those that wait for the person come first, then the newest. */
function ordered(deck: Deck, position: Position): Toast[] {
  const here = deck.toasts.filter((toast) => toast.item.position === position).reverse();
  return [...here.filter(staysInFront), ...here.filter((toast) => !staysInFront(toast))];
}

function staysInFront({ item, phase }: Toast): boolean {
  return isPersistent(item) || item.actions.length > 0 || phase === 'busy';
}

/** The first ones up to the bound. One that fades takes no place. */
function front(toasts: readonly Toast[]): Toast[] {
  let places = VISIBLE_MAX;
  return toasts.filter(({ phase }) => (phase === 'leaving' ? places > 0 : places-- > 0));
}

function withinBound(toasts: readonly Toast[]): readonly Toast[] {
  if (toasts.length <= KEPT_MAX) return toasts;
  const gone = toasts.find((toast) => !staysInFront(toast)) ?? toasts[0];
  return toasts.filter((toast) => toast !== gone);
}

function change(deck: Deck, id: string, now: number, how: (toast: Toast) => Toast): Deck {
  if (!find(deck, id)) return deck;
  return timed({ ...deck, toasts: deck.toasts.map((toast) => (toast.item.id === id ? how(toast) : toast)) }, now);
}

function phase(toast: Toast, phase: Phase, remaining: number | null): Toast {
  return { ...toast, phase, remaining, since: null };
}

/** Starts and pauses the timers as the state demands. A position without toasts is held by nothing. */
function timed(deck: Deck, now: number): Deck {
  const readable = new Set(POSITIONS.flatMap((position) => front(ordered(deck, position))));
  const runs = ({ item, phase }: Toast, visible: boolean): boolean =>
    phase === 'leaving' || (visible && !deck.tabHidden && (phase === 'done' || !deck.held.includes(item.position)));
  const toasts = deck.toasts.map((toast) => {
    const running = toast.remaining !== null && runs(toast, readable.has(toast));
    if (running === (toast.since !== null)) return toast;
    return { ...toast, remaining: timeLeft(toast, now), since: running ? now : null };
  });
  const used = deck.held.filter((position) => toasts.some((toast) => toast.item.position === position));
  return { ...deck, toasts, held: used };
}
