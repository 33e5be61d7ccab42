// A list that is loaded page by page, by the hub's cursors.
import { Observable } from '../../store/observable.ts';
import { explain } from '../api.ts';
import type { Page } from '../wire.ts';

export interface Pages<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins; null = there is none. */
  readonly cursor: string | null;
  readonly loading: boolean;
  /** Whether the first page has come. */
  readonly loaded: boolean;
  readonly problem: string | null;
}

const EMPTY = { items: [], cursor: null, loading: false, loaded: false, problem: null } as const;

export class PagedList<Item> {
  readonly state = new Observable<Pages<Item>>(EMPTY);
  readonly #load: (cursor: string | null) => Promise<Page<Item>>;
  readonly #key: (item: Item) => string;
  /** Incremented by every reload. A page that was asked for before is ignored. */
  #generation = 0;

  constructor(load: (cursor: string | null) => Promise<Page<Item>>, key: (item: Item) => string) {
    this.#load = load;
    this.#key = key;
  }

  /** Begins anew; what is shown stays until the first page has come. */
  async reload(): Promise<void> {
    this.#generation += 1;
    await this.#next(null, []);
  }

  /** Loads the next page, or the first one. */
  async more(): Promise<void> {
    const { loading, loaded, cursor, items } = this.state.get();
    if (loading || (loaded && cursor === null)) return;
    await this.#next(cursor, items);
  }

  /** Replaces the item with the same key. */
  replace(item: Item): void {
    const key = this.#key(item);
    this.state.update((state) => ({ ...state, items: state.items.map((other) => (this.#key(other) === key ? item : other)) }));
  }

  remove(key: string): void {
    this.state.update((state) => ({ ...state, items: state.items.filter((item) => this.#key(item) !== key) }));
  }

  async #next(cursor: string | null, before: readonly Item[]): Promise<void> {
    const generation = this.#generation;
    this.state.update((state) => ({ ...state, loading: true, problem: null }));
    const result = await this.#load(cursor).catch((error: unknown) => explain('The list could not be loaded', error));
    if (generation !== this.#generation) return;
    if (typeof result === 'string') {
      this.state.update((state) => ({ ...state, loading: false, problem: result }));
      return;
    }
    // A row that moved between two pages is shown once.
    const known = new Set(before.map((item) => this.#key(item)));
    const items = [...before, ...result.items.filter((item) => !known.has(this.#key(item)))];
    this.state.set({ items, cursor: result.next_cursor, loading: false, loaded: true, problem: null });
  }
}
