// The entry for any page: `<bellwire-toaster>`, `<bellwire-inbox>`, and what connects them.
import { InboxElement } from './elements/inbox.ts';
import { ToastLayer } from './elements/toast-layer.ts';
import { ToasterElement } from './elements/toaster.ts';

export { Bellwire } from './bellwire.ts';
export type { BellwireOptions, PromptContext, PromptHandler } from './bellwire.ts';
export { notificationsFrom } from './chat/notifications-from.ts';
export type { ChatNotifications, ChatOptions, ChatStream } from './chat/notifications-from.ts';
export type { Inbox } from './store/inbox.ts';
export type { Action, Notification, NotificationType, Position } from './notification.ts';
export { connect, disconnect } from './page.ts';
export { english } from './strings.ts';
export type { Strings } from './strings.ts';

if (typeof customElements !== 'undefined') {
  const elements: Record<string, CustomElementConstructor> = {
    'bellwire-toast-layer': ToastLayer,
    'bellwire-toaster': ToasterElement,
    'bellwire-inbox': InboxElement,
  };
  for (const [name, element] of Object.entries(elements)) if (!customElements.get(name)) customElements.define(name, element);
}
