// The messages of a conversation, oldest first. The newest page is loaded first; older pages are put before it.
import { Observable } from '../../store/observable.ts';
import { explain } from '../api.ts';
import type { Message, Page } from '../wire.ts';

/** How many messages are kept while the end is shown. Beyond it, the oldest are dropped and are loaded again by scrolling. */
export const MESSAGES_MAX = 5000;
/** How many pages are loaded to close a gap. If more is missing, the transcript begins anew with the newest page. */
const GAP_PAGES = 10;

export interface TranscriptState {
  readonly messages: readonly Message[];
  /** Where the next older page begins; null = there is none. */
  readonly cursor: string | null;
  readonly loading: boolean;
  /** Whether the newest page has come. */
  readonly loaded: boolean;
  readonly problem: string | null;
}

const EMPTY: TranscriptState = { messages: [], cursor: null, loading: false, loaded: false, problem: null };

export class Transcript {
  readonly state = new Observable<TranscriptState>(EMPTY);
  /** Loads a page with the newest message first. */
  readonly #load: (cursor: string | null) => Promise<Page<Message>>;
  /** The last request: the next one waits for it, so that pages are joined in their order. */
  #last: Promise<void> = Promise.resolve();
  #failed: (() => Promise<void>) | null = null;

  constructor(load: (cursor: string | null) => Promise<Page<Message>>) {
    this.#load = load;
  }

  /** Loads the page before the first message, or the newest page. */
  older(): Promise<void> {
    const { loading, loaded, cursor } = this.state.get();
    if (loading || (loaded && cursor === null)) return this.#last;
    return this.#request(() => this.#older());
  }

  /** Loads what came after the last message. `atEnd`: the end is shown, so the oldest may be dropped. */
  newer(atEnd: boolean): Promise<void> {
    return this.#request(() => this.#newer(atEnd));
  }

  /** Repeats the request that failed. */
  retry(): Promise<void> {
    return this.#failed === null ? this.#last : this.#request(this.#failed);
  }

  #request(work: () => Promise<void>): Promise<void> {
    this.state.update((state) => ({ ...state, loading: true }));
    this.#last = this.#last.then(async () => {
      this.#failed = null;
      await work().catch((error: unknown) => {
        this.#failed = work;
        this.state.update((state) => ({ ...state, loading: false, problem: explain('The messages could not be loaded', error) }));
      });
    });
    return this.#last;
  }

  async #older(): Promise<void> {
    const page = await this.#load(this.state.get().cursor);
    const { messages } = this.state.get();
    this.#set([...unknown(messages, page.items), ...messages], page.next_cursor);
  }

  async #newer(atEnd: boolean): Promise<void> {
    const { messages, cursor, loaded } = this.state.get();
    const known = new Set(messages.map(({ id }) => id));
    const newest = await this.#load(null);
    const pages = [newest];
    const isJoined = (): boolean => pages.some(({ items }) => items.some(({ id }) => known.has(id)));
    while (!isJoined() && loaded && pages.length < GAP_PAGES) {
      const next = pages.at(-1)?.next_cursor ?? null;
      if (next === null) break;
      pages.push(await this.#load(next));
    }
    const end = pages.at(-1)?.next_cursor ?? null;
    const joins = isJoined() || end === null;
    const all = [...(joins ? messages : []), ...unknown(joins ? messages : [], pages.flatMap(({ items }) => items))];
    if (atEnd && all.length > MESSAGES_MAX) this.#set([...newest.items].reverse(), newest.next_cursor);
    else this.#set(all, isJoined() ? cursor : end);
  }

  #set(messages: readonly Message[], cursor: string | null): void {
    this.state.set({ messages, cursor, loading: false, loaded: true, problem: null });
  }
}

/** Those of a page that are not known, oldest first. */
function unknown(messages: readonly Message[], newestFirst: readonly Message[]): Message[] {
  const known = new Set(messages.map(({ id }) => id));
  return newestFirst.filter(({ id }) => !known.has(id)).reverse();
}
