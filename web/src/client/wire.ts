// What the hub sends, by the types of docs/openapi.json.
import type { components, operations } from '../api.d.ts';
import { type Delivery, type Notification, type NotificationType, POSITIONS, TYPES, isRecord } from '../notification.ts';

type WireNotification = components['schemas']['Notification'];
export type WireProblem = components['schemas']['Problem'];
export type WireSettings = components['schemas']['Settings'];
export type InboxQuery = NonNullable<operations['inbox_list']['parameters']['query']>;

/** Reads an inbox item of the hub; null if it is none. */
export function fromHub(value: unknown): Notification | null {
  if (!isRecord(value) || typeof value.id !== 'string' || typeof value.message !== 'string') return null;
  const item = value as Partial<WireNotification> & { id: string; message: string; deliveries?: unknown };
  return {
    id: item.id,
    from: 'hub',
    kind: item.kind ?? 'message',
    type: TYPES.find((type) => type === (item.type satisfies NotificationType | undefined)) ?? 'info',
    origin: item.origin ?? null,
    source: item.source ?? null,
    conversation_id: item.conversation_id ?? null,
    title: item.title ?? null,
    message: item.message,
    duration: item.duration ?? 0,
    position: POSITIONS.find((position) => position === item.position) ?? 'top-right',
    actions: (item.actions ?? []).map(({ label, action, prompt, pressed_at }) => ({ label, action, prompt, pressed_at })),
    created_at: item.created_at ?? '',
    read_at: item.read_at ?? null,
    dismissed_at: item.dismissed_at ?? null,
    deliveries: Array.isArray(item.deliveries) ? item.deliveries.filter(isRecord).map(delivery) : [],
  };
}

function delivery(value: Record<string, unknown>): Delivery {
  const text = (field: unknown): string => (typeof field === 'string' ? field : '');
  return { channel: text(value.channel), state: text(value.state), at: text(value.at), reason: text(value.reason) || null };
}
