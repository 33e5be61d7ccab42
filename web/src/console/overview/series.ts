// The plots of the overview: which columns of the statistics each shows.
import type { Statistics } from '../wire.ts';

export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
  /** The name of the colour's variable. */
  readonly colour: string;
}

export interface Plot {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
}

export function plotsOf(statistics: Statistics): readonly Plot[] {
  const { events, verdicts, injected_items: items, injected_tokens: tokens, saved_tokens: kept, injection_ms: latency, deliveries } = statistics;
  const series = (name: string, values: readonly (number | null)[], colour: string): Series => ({ name, values, colour });
  return [
    { title: 'Events and verdicts', unit: 'per minute', series: [
      series('events', events, '--text'), series('queued', verdicts.queued, '--success'), series('held', verdicts.held, '--warning'),
      series('duplicate', verdicts.duplicate, '--info'), series('filtered', verdicts.filtered, '--control'), series('suppressed', verdicts.suppressed, '--error'),
    ] },
    { title: 'Injected', unit: 'items per minute', series: [series('items', items, '--success')] },
    { title: 'Tokens', unit: 'per minute', series: [series('injected', tokens, '--info'), series('saved by merging', kept, '--success')] },
    { title: 'Injection latency', unit: 'ms', series: [series('p50', latency.p50, '--info'), series('p99', latency.p99, '--warning')] },
    { title: 'Oldest in the queues', unit: 's', series: [
      series('notification', statistics.oldest_pending_seconds, '--info'), series('delivery', statistics.oldest_delivery_seconds, '--warning'),
    ] },
    { title: 'Deliveries', unit: 'per minute', series: [
      series('sent', deliveries.sent, '--success'), series('failed', deliveries.failed, '--error'), series('unknown', deliveries.unknown, '--warning'),
      series('skipped', deliveries.skipped, '--control'), series('cancelled', deliveries.cancelled, '--info'),
    ] },
  ];
}

/** The seconds since 1970 of each minute. */
export function timesOf({ start, step_seconds: step, events }: Statistics): number[] {
  const first = Date.parse(start) / 1000;
  return events.map((_, at) => first + at * step);
}

/** The sum of a column. */
export function sum(values: readonly (number | null)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}
