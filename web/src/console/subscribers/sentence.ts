// A subscriber's rule in one sentence.
import { length } from '../format.ts';
import type { Subscriber } from '../wire.ts';

const POINTS = {
  immediate: 'at once', turn_start: 'when its next turn begins', after_tool: 'after its next tool call', turn_end: 'when its turn ends',
} as const;

export function sentence(subscriber: Subscriber): string {
  const { audience, inject_at: point, activation } = subscriber;
  const who = { agent: 'the agent', user: 'the person', both: 'the agent and the person' }[audience];
  const when = point === null || audience === 'user' ? '' : ` ${POINTS[point]}`;
  const wakes = activation === 'wake' ? ' It wakes an idle agent.' : '';
  return `Tells ${who} about ${events(subscriber)}${when}${collects(subscriber)}.${repeats(subscriber)}${wakes}`;
}

function events({ types, severity_filter: least }: Subscriber): string {
  const names = types.length > 3 ? `${types.slice(0, 2).join(', ')} and ${String(types.length - 2)} more types` : types.join(', ').replace(/, ([^,]*)$/, ' and $1');
  return least === 'debug' ? names : `${names} of severity ${least} or higher`;
}

function collects({ window_ms: window, max_size: most }: Subscriber): string {
  return window === 0 || most === 1 ? '' : `, up to ${String(most)} together within ${length(window)}`;
}

function repeats({ dedupe_window_ms: window }: Subscriber): string {
  return window === 0 ? '' : ` Repeats within ${length(window)} only count.`;
}
