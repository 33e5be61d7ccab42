import { type ReactElement } from 'react';
import { type Bellwire, type BellwireOptions, type ChatOptions, type Strings } from './elements.js';
export interface BellwireElementProps {
    /** Default: the instance that [`useBellwire`] or `connect` made last. */
    readonly bellwire?: Bellwire | null;
    /** The texts to replace. */
    readonly strings?: Partial<Strings> | null;
    /** Default: as the system is set. */
    readonly theme?: 'light' | 'dark';
    readonly className?: string;
}
export interface BellwireToasterProps extends BellwireElementProps {
    /** The key that moves the focus to the newest toast; '' = none. Default: F8. */
    readonly hotkey?: string;
}
/** Shows the toasts of the page. Render it once. */
export declare function BellwireToaster(props: BellwireToasterProps): ReactElement;
/** A bell with the number of unread notifications, which opens the inbox. */
export declare function BellwireInbox(props: BellwireElementProps): ReactElement;
/**
 * Connects the page while the component is mounted; null = not signed in. The connection is made again when the hub, the
 * person or the token changes; functions may change with every rendering.
 */
export declare function useBellwire(options: BellwireOptions | null): Bellwire | null;
/** How many notifications are unread. */
export declare function useUnread(bellwire: Bellwire | null): number;
/** Shows the notifications in the tool results of a chat's messages, such as those of the AI SDK's `useChat`. */
export declare function useNotificationsFrom(messages: unknown, options?: ChatOptions): void;
