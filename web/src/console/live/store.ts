// The rows of the live page as a pure state: newest first, bounded, and with the later fates of each event.
import type { Fate, ListedEvent } from '../wire.ts';
import { type Group, type Outcome, isTelling, outcomeOf } from './outcome.ts';

/** How many rows the page keeps, and how many wait while it is paused. */
export const ROWS_MAX = 500;

export interface LiveRow {
  readonly event: ListedEvent;
  readonly outcome: Outcome;
  /** The latest fate of each of its notifications. */
  readonly fates: ReadonlyMap<string, Fate>;
}

export interface Live {
  /** Newest first. */
  readonly rows: readonly LiveRow[];
  readonly paused: boolean;
  /** What arrived while it is paused, newest first. */
  readonly waiting: readonly LiveRow[];
  /** How many arrived while it is paused, also those that are no longer kept. */
  readonly waitingCount: number;
  /** How many entries the hub left out because this reader was too slow. */
  readonly skipped: number;
  /** The last gap that was too large to be closed. */
  readonly gap: Gap | null;
}

/** Between these times, events are missing: they came while the connection was lost. */
export interface Gap {
  readonly from: string;
  readonly to: string;
}

export const EMPTY_LIVE: Live = { rows: [], paused: false, waiting: [], waitingCount: 0, skipped: 0, gap: null };

/** What the stream said since the last frame. */
export interface Batch {
  readonly events: readonly ListedEvent[];
  readonly fates: readonly Fate[];
  readonly skipped: number;
}

/** Applies a batch: new rows at the top, or aside while it is paused; fates change rows in place. */
export function apply(live: Live, { events, fates, skipped }: Batch): Live {
  const known = new Set([...live.rows, ...live.waiting].map(({ event }) => event.id));
  const fresh = events.filter((event) => !known.has(event.id)).map((event) => rowOf(event, new Map())).reverse();
  const told = withFates(live.paused
    ? { ...live, waiting: [...fresh, ...live.waiting].slice(0, ROWS_MAX), waitingCount: live.waitingCount + fresh.length }
    : { ...live, rows: fresh.length === 0 ? live.rows : [...fresh, ...live.rows].slice(0, ROWS_MAX) }, fates);
  return skipped === 0 ? told : { ...told, skipped: told.skipped + skipped };
}

export function pause(live: Live): Live {
  return live.paused ? live : { ...live, paused: true };
}

/** Shows what arrived meanwhile. */
export function resume(live: Live): Live {
  if (!live.paused) return live;
  return { ...live, paused: false, rows: [...live.waiting, ...live.rows].slice(0, ROWS_MAX), waiting: [], waitingCount: 0 };
}

export interface LiveFilter {
  readonly text: string;
  readonly group: Group | null;
}

export function filtered(rows: readonly LiveRow[], { text, group }: LiveFilter): readonly LiveRow[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0 && group === null) return rows;
  return rows.filter(({ event, outcome }) => {
    if (group !== null && outcome.group !== group) return false;
    const own = [event.type, event.source, event.conversation_id ?? '', event.user_id, event.id].join(' ').toLowerCase();
    return words.every((word) => own.includes(word));
  });
}

/** Adds events that were stored before the page was opened, as older rows. What became of them since is not known. */
export function addStored(live: Live, events: readonly ListedEvent[]): Live {
  return { ...live, rows: [...live.rows, ...unknown(live, events)].slice(0, ROWS_MAX) };
}

/** Adds events that came while the connection was lost, newest first, between those before and those after it. */
export function addMissed(live: Live, events: readonly ListedEvent[], gap: Gap | null): Live {
  const missed = unknown(live, events);
  const joined = (rows: readonly LiveRow[]): LiveRow[] =>
    [...missed, ...rows].sort((one, other) => (one.event.id < other.event.id ? 1 : -1)).slice(0, ROWS_MAX);
  const waitingCount = live.waitingCount + missed.length;
  const added = live.paused ? { waiting: joined(live.waiting), waitingCount } : { rows: joined(live.rows) };
  return { ...live, ...added, gap: gap ?? live.gap };
}

/** The connection was lost: what became of the rows that waited is not known. */
export function doubt(live: Live): Live {
  return { ...live, rows: live.rows.map(uncertain), waiting: live.waiting.map(uncertain) };
}

function unknown(live: Live, events: readonly ListedEvent[]): LiveRow[] {
  const known = new Set([...live.rows, ...live.waiting].map(({ event }) => event.id));
  return events.filter(({ id }) => !known.has(id)).map((event) => uncertain(rowOf(event, new Map())));
}

function uncertain(row: LiveRow): LiveRow {
  const { group, look } = row.outcome;
  if (group !== 'held' || look === 'plain') return row;
  return { ...row, outcome: { ...row.outcome, look: 'plain', text: look === 'held' ? 'was held' : 'was queued' } };
}

function rowOf(event: ListedEvent, fates: ReadonlyMap<string, Fate>, before: Outcome | null = null): LiveRow {
  const outcome = outcomeOf(event, fates);
  // The same outcome is the same object, so that who watches it sees only changes.
  return { event, fates, outcome: before?.text === outcome.text && before.look === outcome.look ? before : outcome };
}

function withFates(live: Live, fates: readonly Fate[]): Live {
  if (fates.length === 0) return live;
  // An agent's notification names its events; a person's, and a delivery of it, only the notification of the verdict.
  const byEvent = new Map<string, Fate[]>();
  const byNotification = new Map<string, Fate[]>();
  for (const fate of fates.filter(isTelling)) {
    for (const id of fate.event_ids) byEvent.set(id, [...(byEvent.get(id) ?? []), fate]);
    if (fate.event_ids.length === 0 && fate.notification_id !== null) {
      byNotification.set(fate.notification_id, [...(byNotification.get(fate.notification_id) ?? []), fate]);
    }
  }
  const changed = (row: LiveRow): LiveRow => {
    const ofVerdicts = row.event.verdicts.flatMap(({ notification_id: id }) => byNotification.get(id ?? '') ?? []);
    const own = [...(byEvent.get(row.event.id) ?? []), ...ofVerdicts];
    if (own.length === 0) return row;
    return rowOf(row.event, new Map([...row.fates, ...own.flatMap((fate) => (fate.notification_id === null ? [] : [[fate.notification_id, fate] as const]))]), row.outcome);
  };
  return { ...live, rows: live.rows.map(changed), waiting: live.waiting.map(changed) };
}
