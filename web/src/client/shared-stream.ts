// A stream that several tabs read through one connection: the tab that holds the lock reads it and sends each event to the
// others. It has no position: after a lost connection it goes on with what happens then.
import type { HubHttp } from './http.ts';
import type { SseEvent } from './sse.ts';
import { type StreamStatus, follow } from './stream.ts';
import { type TabMessage, Tabs } from './tabs.ts';

export interface SharedStreamEvents {
  event(event: SseEvent): void;
  status(status: StreamStatus): void;
}

export class SharedStream {
  readonly #tabs: Tabs;
  readonly #events: SharedStreamEvents;
  #status: StreamStatus = 'connecting';
  #leads = false;

  /** Only tabs with the same `shareTabs` share it. */
  constructor(http: HubHttp, path: string, shareTabs: string, events: SharedStreamEvents) {
    this.#events = events;
    this.#tabs = new Tabs(`${path} ${shareTabs}`, (message) => { this.#receive(message); });
    this.#tabs.tell({ kind: 'hello' });
    void this.#tabs.lead((stop) => this.#follow(http, path, stop));
  }

  close(): void {
    this.#tabs.close();
  }

  async #follow(http: HubHttp, path: string, stop: AbortSignal): Promise<void> {
    this.#leads = true;
    await follow(http, path, {
      position: () => null,
      forget: () => undefined,
      fresh: () => undefined,
      event: (event) => {
        this.#tabs.tell({ kind: 'event', event });
        this.#events.event(event);
      },
      status: (status) => {
        this.#setStatus(status);
        this.#tabs.tell({ kind: 'status', status, position: null });
      },
    }, stop);
    this.#leads = false;
  }

  #receive(message: TabMessage): void {
    if (message.kind === 'hello' && this.#leads) this.#tabs.tell({ kind: 'status', status: this.#status, position: null });
    if (this.#leads) return;
    if (message.kind === 'status' && message.status !== 'ended') this.#setStatus(message.status);
    if (message.kind === 'event') this.#events.event(message.event);
  }

  #setStatus(status: StreamStatus): void {
    this.#status = status;
    this.#events.status(status);
  }
}
