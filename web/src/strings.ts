// Every text that the elements show themselves. A page replaces any of them: `element.strings = {dismiss: 'Verwerfen'}`.
import type { NotificationType } from './notification.ts';
import type { Problem } from './problem.ts';

export const english = {
  /** The name of the region that has the toasts, and of the inbox. */
  notifications: 'Notifications',
  severity: {
    info: 'Info', success: 'Success', warning: 'Warning', error: 'Error', reminder: 'Reminder',
  } as Readonly<Record<NotificationType, string>>,
  dismiss: 'Dismiss',
  more: 'more',
  less: 'less',
  /** How many toasts are behind the visible ones. */
  behind: (count: number): string => `+${String(count)}`,
  behindLabel: (count: number): string => `Show ${String(count)} more`,
  /** What a button sends. With several such buttons, each is named. */
  sends: (prompt: string): string => `sends “${prompt}”`,
  sendsBy: (label: string, prompt: string): string => `${label} sends “${prompt}”`,
  sending: 'Sending…',
  sent: 'Sent',
  retry: 'Retry',
  answered: (label: string): string => `Answered: ${label}`,
  /** Why a button is disabled. */
  noHandler: 'This page cannot send it to the agent.',
  problem: ({ code, detail }: Problem): string => {
    switch (code) {
      case 'unreachable':
        return 'Not sent: the hub cannot be reached.';
      case 'signed_out':
        return 'Not sent: you are signed out. Sign in again.';
      case 'too_many':
        return 'Not sent: too many requests. Wait a moment.';
      case 'answered':
        return detail === null ? 'It was already dismissed.' : `Already answered: ${detail}`;
      case 'gone':
        return 'It no longer exists.';
      case 'failed':
        return `Not sent: ${detail ?? 'an unknown error'}`;
    }
  },
  /** What a screen reader hears after the text of a toast with buttons. */
  announceActions: (count: number, hotkey: string): string =>
    `${String(count)} ${count === 1 ? 'action' : 'actions'} available${hotkey === '' ? '' : `, press ${hotkey}`}.`,
  bell: (unread: number): string => (unread === 0 ? 'Notifications' : `Notifications, ${String(unread)} unread`),
  badge: (unread: number): string => (unread > 99 ? '99+' : String(unread)),
  close: 'Close',
  markRead: 'Mark as read',
  markUnread: 'Mark as unread',
  markAllRead: 'Mark all as read',
  unreadMark: 'Unread',
  show: 'Show',
  filterState: { unread: 'Unread', all: 'All', dismissed: 'Dismissed' },
  filterType: 'Type',
  anyType: 'All types',
  loadMore: 'Load more',
  loading: 'Loading…',
  empty: {
    unread: 'Nothing unread. When an agent needs you, it shows here.',
    all: 'Nothing here yet. When an agent needs you, it shows here.',
    dismissed: 'Nothing was dismissed.',
  },
  listProblem: ({ code, detail }: Problem): string =>
    code === 'signed_out' ? 'You are signed out. Sign in again.'
    : code === 'failed' ? `The list could not be loaded: ${detail ?? 'an unknown error'}`
    : 'The list could not be loaded: the hub cannot be reached.',
  reconnecting: 'Reconnecting… what arrives meanwhile will be here.',
  signedOut: 'You are signed out. Sign in again to get new notifications.',
  noHub: 'This page is not connected to a hub.',
  /** What became of it outside: `mail sent 07:00`. */
  delivery: (channel: string, state: string, at: string, reason: string | null): string =>
    [channel, state, at, reason === null ? '' : `(${reason})`].filter((part) => part !== '').join(' '),
};

export type Strings = typeof english;

export function withStrings(replaced: Partial<Strings> | null | undefined): Strings {
  return replaced ? { ...english, ...replaced } : english;
}
