// Several tabs, one stream: a browser opens only six connections per HTTP/1.1 origin. The tab that holds the lock reads the
// stream and shares what it reads; when it closes, the lock goes to another tab, which continues after the same position.
import type { SseEvent } from './sse.ts';
import type { StreamStatus } from './stream.ts';

/** What one tab tells the others. */
export type TabMessage =
  | { readonly kind: 'event'; readonly event: SseEvent }
  | { readonly kind: 'status'; readonly status: StreamStatus; readonly position: string | null }
  /** A toast's time is over: it was seen. */
  | { readonly kind: 'hide'; readonly id: string }
  /** A new tab asks the leading one for its status. */
  | { readonly kind: 'hello' };

export class Tabs {
  readonly #name: string;
  readonly #channel: BroadcastChannel | null;
  readonly #stop = new AbortController();

  /** `name` has everything that two tabs must have in common to share a stream. Null = this tab shares nothing. */
  constructor(name: string | null, receive: (message: TabMessage) => void) {
    const shared = name !== null && typeof BroadcastChannel !== 'undefined' && 'locks' in navigator;
    this.#name = `bellwire/1 ${name ?? ''}`;
    this.#channel = shared ? new BroadcastChannel(this.#name) : null;
    this.#channel?.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => { receive(data); });
  }

  tell(message: TabMessage): void {
    this.#channel?.postMessage(message);
  }

  /** Waits until this tab leads, runs `work`, and lets another tab lead when it ends. */
  async lead(work: (stop: AbortSignal) => Promise<void>): Promise<void> {
    const signal = this.#stop.signal;
    if (this.#channel === null) return work(signal);
    try {
      await navigator.locks.request(this.#name, { signal }, () => work(signal));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  close(): void {
    this.#stop.abort();
    this.#channel?.close();
  }
}
