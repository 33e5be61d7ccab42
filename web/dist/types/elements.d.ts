export { Bellwire } from './bellwire.ts';
export type { BellwireOptions, PromptContext, PromptHandler } from './bellwire.ts';
export { notificationsFrom } from './chat/notifications-from.ts';
export type { ChatNotifications, ChatOptions, ChatStream } from './chat/notifications-from.ts';
export type { Inbox } from './store/inbox.ts';
export type { Action, Notification, NotificationType, Position } from './notification.ts';
export { connect, disconnect } from './page.ts';
export { english } from './strings.ts';
export type { Strings } from './strings.ts';
