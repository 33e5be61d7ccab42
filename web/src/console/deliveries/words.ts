// What a delivery's state means, and what retrying or cancelling it will do.
import type { Delivery } from '../wire.ts';

export type State = Delivery['state'];

export const LOOKS: Readonly<Record<State, string>> = {
  waiting: 'waits', claimed: 'waits', started: 'waits', sent: 'good', failed: 'bad', unknown: 'held', skipped: '', cancelled: '',
};

/** What is sent. */
export function about({ title, notification_id: notification }: Delivery): string {
  return title ?? (notification === null ? 'A code that confirms an address' : 'A notification that was deleted');
}

/** From whom, how, and to whom it is sent: `butler · email to ada@example.org · ada`. */
export function route({ origin, channel, target, user_id: user }: Delivery): string {
  return [...(origin === null ? [] : [origin]), `${channel} to ${target}`, user].join(' · ');
}

export function canRetry({ state }: Delivery): boolean {
  return state === 'failed' || state === 'unknown' || state === 'skipped' || state === 'cancelled';
}

export function canCancel({ state }: Delivery): boolean {
  return state === 'waiting';
}

export function retryQuestion({ channel, target, state }: Delivery): string {
  const again = `Send it to ${target} by ${channel} again, now?`;
  return state === 'unknown' ? `${again} It may have arrived already; then it arrives twice.` : again;
}

export function cancelQuestion({ channel, target }: Delivery): string {
  return `Not send it to ${target} by ${channel}? It stays in the person’s inbox.`;
}
