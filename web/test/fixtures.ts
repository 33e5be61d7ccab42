import type { Notification } from '../src/notification.ts';

/** A toast of the hub, with what a test changes. */
export function toastItem(id: string, change: Partial<Notification> = {}): Notification {
  return {
    id, from: 'hub', kind: 'toast', type: 'info', origin: 'butler', source: null, conversation_id: 'chat', title: null,
    message: `Message ${id}`, duration: 5000, position: 'top-right', actions: [], created_at: '2026-01-03T15:30:00Z',
    read_at: null, dismissed_at: null, deliveries: [], ...change,
  };
}

export const promptAction = { label: 'View Logs', action: 'prompt', prompt: 'show me the build logs', pressed_at: null } as const;
