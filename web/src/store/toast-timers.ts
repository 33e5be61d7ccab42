import { Observable } from './observable.ts';
import { type Deck, EMPTY_DECK, find, hideTab, tick, wakesAt } from './toasts.ts';

/** Drives the deck with the page's clock: wakes when a timer ends, and pauses while the tab is hidden. */
export class ToastTimers {
  readonly deck = new Observable<Deck>(EMPTY_DECK);
  readonly #timedOut: (id: string) => void;
  readonly #ended = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `timedOut` is called with each toast that was shown for its time. */
  constructor(timedOut: (id: string) => void) {
    this.#timedOut = timedOut;
    this.deck.subscribe(() => { this.#schedule(); });
    if (!('document' in globalThis)) return;
    const look = (): void => { this.move((deck, now) => hideTab(deck, document.visibilityState === 'hidden', now)); };
    document.addEventListener('visibilitychange', look, { signal: this.#ended.signal });
    look();
  }

  move(step: (deck: Deck, now: number) => Deck): void {
    this.deck.set(step(this.deck.get(), performance.now()));
  }

  close(): void {
    this.#ended.abort();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    const at = wakesAt(this.deck.get());
    if (at === null || this.#ended.signal.aborted) return;
    this.#timer = setTimeout(() => { this.#wake(); }, Math.max(0, at - performance.now()));
  }

  #wake(): void {
    const before = this.deck.get();
    this.move(tick);
    // A browser's timer may fire a moment too early.
    if (this.deck.get() === before) this.#schedule();
    for (const { item, phase } of this.deck.get().toasts) {
      if (phase === 'leaving' && find(before, item.id)?.phase === 'open') this.#timedOut(item.id);
    }
  }
}
