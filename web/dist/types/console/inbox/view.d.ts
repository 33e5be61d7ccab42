import type { Notification } from '../../notification.ts';
import { type Inbox } from '../../store/inbox.ts';
export declare class InboxView {
    #private;
    /** The items, newest first. The same list until the inbox changes. */
    of(inbox: Inbox): readonly Notification[];
    keep(id: string): void;
}
