// Sample events for a subscriber, from the event types that the hub knows.
import type { EventType, Subscriber } from '../wire.ts';

export function sampleEvent({ type, severity, fields }: EventType): Record<string, unknown> {
  const payload = Object.fromEntries(fields.map(({ name, example }) => [name, example]));
  return { type, source: 'playground', severity, payload, conversation_id: 'chat' };
}

/** One event of each known type that it listens for, at most two; its first type where none is known. */
export function samplesFor({ id, types, severity_filter: least }: Pick<Subscriber, 'id' | 'types' | 'severity_filter'>, known: readonly EventType[]): readonly Record<string, unknown>[] {
  const own = known.filter(({ subscribers }) => subscribers.includes(id));
  if (own.length > 0) return own.slice(0, 2).map(sampleEvent);
  const type = (types[0] ?? 'my.event').replaceAll('*', 'example');
  return [{ type, source: 'playground', severity: least === 'debug' ? 'info' : least, payload: { message: 'Something happened' }, conversation_id: 'chat' }];
}
