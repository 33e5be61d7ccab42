// The entry for React: the elements as typed components, and hooks for what connects them.
import { type ReactElement, createElement, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import {
  type Bellwire, type BellwireOptions, type ChatNotifications, type ChatOptions, type Strings, connect, disconnect, notificationsFrom,
} from './elements.ts';

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
export function BellwireToaster(props: BellwireToasterProps): ReactElement {
  return useElement('bellwire-toaster', props);
}

/** A bell with the number of unread notifications, which opens the inbox. */
export function BellwireInbox(props: BellwireElementProps): ReactElement {
  return useElement('bellwire-inbox', props);
}

/** Objects are set as properties after rendering: React before 19 would turn them into attributes. */
function useElement(name: string, { bellwire, strings, className, ...attributes }: BellwireToasterProps): ReactElement {
  const element = useRef<HTMLElement & { bellwire: Bellwire | null; strings: Partial<Strings> | null }>(null);
  useEffect(() => {
    if (!element.current) return;
    element.current.bellwire = bellwire ?? null;
    element.current.strings = strings ?? null;
  }, [bellwire, strings]);
  return createElement(name, { ref: element, class: className, ...attributes });
}

/**
 * Connects the page while the component is mounted; null = not signed in. The connection is made again when the hub, the
 * person or the token changes; functions may change with every rendering.
 */
export function useBellwire(options: BellwireOptions | null): Bellwire | null {
  const [bellwire, setBellwire] = useState<Bellwire | null>(null);
  const latest = useRef(options);
  useEffect(() => {
    latest.current = options;
    if (bellwire) bellwire.onPrompt = options?.onPrompt ?? null;
  });
  const { url, user, token, headers, fetch, shareTabs } = options ?? {};
  const [isSet, hasToken, hasHeaders, hasFetch] = [options !== null, token !== undefined, headers !== undefined, fetch !== undefined];
  const secret = typeof token === 'string' ? token : null;
  useEffect(() => {
    const current = latest.current;
    if (!isSet || !current) return;
    const made = connect({ ...current, ...lateBound(latest) });
    setBellwire(made);
    return () => {
      setBellwire(null);
      disconnect(made);
    };
  }, [isSet, url, user, secret, hasToken, hasHeaders, hasFetch, shareTabs]);
  return bellwire;
}

/** The functions of the options, as they are when they are called. */
function lateBound(latest: { readonly current: BellwireOptions | null }): Partial<BellwireOptions> {
  const { token, headers, fetch } = latest.current ?? {};
  return {
    ...(typeof token === 'function' && { token: () => callable(latest.current?.token ?? token) }),
    ...(headers && { headers: () => (latest.current?.headers ?? headers)() }),
    ...(fetch && { fetch: (path: string, init: RequestInit) => (latest.current?.fetch ?? fetch)(path, init) }),
  };
}

function callable(token: NonNullable<BellwireOptions['token']>): string | Promise<string> {
  return typeof token === 'function' ? token() : token;
}

/** How many notifications are unread. */
export function useUnread(bellwire: Bellwire | null): number {
  const count = (): number => bellwire?.inbox.get().unread ?? 0;
  return useSyncExternalStore(bellwire?.inbox.subscribe ?? never, count, () => 0);
}

/** Shows the notifications in the tool results of a chat's messages, such as those of the AI SDK's `useChat`. */
export function useNotificationsFrom(messages: unknown, options: ChatOptions = {}): void {
  const found = useRef<ChatNotifications | null>(null);
  useEffect(() => {
    found.current ??= notificationsFrom(null, options);
    found.current.push(messages);
  // The options are those of the first rendering.
  }, [messages]);
}

function never(): () => void {
  return () => undefined;
}
