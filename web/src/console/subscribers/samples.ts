// Sample events for a subscriber, from the known types.
import { EVENT_TYPES, type EventType } from '../event-types.ts';
import type { Subscriber } from '../wire.ts';

/** Whether a subscriber's pattern takes a type: `*` is one part, or all of the rest at the end. */
export function listens(pattern: string, type: string): boolean {
  const [wanted, given] = [pattern.split('.'), type.split('.')];
  if (wanted.at(-1) === '*' && given.length >= wanted.length) wanted.length -= 1;
  else if (wanted.length !== given.length) return false;
  return wanted.every((part, at) => part === '*' || part === given[at]);
}

export function sampleEvent({ type, severity, fields }: EventType): Record<string, unknown> {
  const payload = Object.fromEntries(fields.map(({ name, example }) => [name, example]));
  return { type, source: 'playground', severity, payload, conversation_id: 'chat' };
}

/** One event of each known type that it takes, at most two; its first type where none is known. */
export function samplesFor({ types, severity_filter: least }: Pick<Subscriber, 'types' | 'severity_filter'>): readonly Record<string, unknown>[] {
  const known = EVENT_TYPES.filter(({ type }) => types.some((pattern) => listens(pattern, type)));
  if (known.length > 0) return known.slice(0, 2).map(sampleEvent);
  const type = (types[0] ?? 'my.event').replaceAll('*', 'example');
  return [{ type, source: 'playground', severity: least === 'debug' ? 'info' : least, payload: { message: 'Something happened' }, conversation_id: 'chat' }];
}
