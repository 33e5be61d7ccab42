// What waits for an agent: the ids come from the conversation's stream, what they are from its stored events.
import type { ListedEvent, Subscriber } from '../wire.ts';

/** The pending notifications of one agent, as the stream says them. */
export interface Hint {
  readonly agent: string;
  readonly notifications: readonly string[];
  readonly count: number;
}

export interface Pending {
  readonly id: string;
  readonly agent: string;
  /** The subscriber's name for people. */
  readonly name: string;
  readonly point: string;
  /** The types of its events, each with how often it came. */
  readonly events: readonly string[];
}

export function pendingOf(hints: Iterable<Hint>, events: readonly ListedEvent[], subscribers: readonly Subscriber[]): readonly Pending[] {
  const named = new Map(subscribers.map((subscriber) => [subscriber.id, subscriber]));
  const found = new Map<string, { subscriber: string; types: string[] }>();
  for (const event of events) {
    for (const { notification_id: id, subscriber } of event.verdicts) {
      if (!id) continue;
      const known = found.get(id) ?? { subscriber, types: [] };
      found.set(id, { ...known, types: [...known.types, event.type] });
    }
  }
  return [...hints].flatMap(({ agent, notifications }) => notifications.map((id) => {
    const own = found.get(id);
    const subscriber = named.get(own?.subscriber ?? '');
    return { id, agent, name: subscriber?.name ?? 'A notification', point: subscriber?.inject_at ?? 'the next point', events: counted(own?.types ?? []) };
  }));
}

function counted(types: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1);
  return [...counts].map(([type, count]) => (count === 1 ? type : `${type} ×${String(count)}`));
}
