import type { Delivery } from '../../notification.ts';

const SENT: Readonly<Record<string, string>> = { email: 'mailed', telegram: 'sent by Telegram' };
const NAMES: Readonly<Record<string, string>> = { email: 'mail', telegram: 'Telegram message' };

/** What happened to a notification outside of the hub: `mailed 07:00 after quiet hours`. `at` is the time as people read it. */
export function deliveryText({ channel, state, reason }: Delivery, at: string): string {
  const name = NAMES[channel] ?? channel;
  const why = reason === null ? '' : ` (${reason})`;
  switch (state) {
    case 'sent':
      return `${SENT[channel] ?? `sent by ${channel}`} ${at}${reason === null ? '' : ` after ${reason}`}`;
    case 'waiting':
    case 'claimed':
    case 'started':
      return `${name} waits until ${at}${why}`;
    case 'failed':
      return `${name} failed ${at}${why}`;
    case 'unknown':
      return `${name} may have arrived ${at}${why}`;
    case 'skipped':
      return `no ${name}${why}`;
    case 'cancelled':
      return `${name} cancelled ${at}`;
    default:
      return `${name} ${state} ${at}${why}`;
  }
}
