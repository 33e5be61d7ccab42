/** State that can be watched. `get` returns the same object until the state changes. */
export interface Readable<State> {
  readonly get: () => State;
  /** Calls the listener after every change. Returns the function that ends it. */
  readonly subscribe: (listener: () => void) => () => void;
}

/** State that lives outside of the components; they only draw it. */
export class Observable<State> implements Readable<State> {
  readonly #listeners = new Set<() => void>();
  #state: State;

  constructor(state: State) {
    this.#state = state;
  }

  get = (): State => this.#state;

  set(state: State): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of [...this.#listeners]) listener();
  }

  update(change: (state: State) => State): void {
    this.set(change(this.#state));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}
