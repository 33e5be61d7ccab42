export { Bellwire } from './bellwire.js';
export type { BellwireOptions, PromptContext, PromptHandler } from './bellwire.js';
export { notificationsFrom } from './chat/notifications-from.js';
export type { ChatNotifications, ChatOptions, ChatStream } from './chat/notifications-from.js';
export type { Inbox } from './store/inbox.js';
export type { Action, Notification, NotificationType, Position } from './notification.js';
export { connect, disconnect } from './page.js';
export { english } from './strings.js';
export type { Strings } from './strings.js';
