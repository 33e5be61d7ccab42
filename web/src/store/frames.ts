/** How long work waits at most, in milliseconds: a tab in the background draws no frames. */
const LATEST_MS = 200;

/** Runs work once for all calls before the next animation frame. */
export class OncePerFrame {
  readonly #work: () => void;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(work: () => void) {
    this.#work = work;
  }

  request(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => { this.flush(); }, LATEST_MS);
    if ('requestAnimationFrame' in globalThis) this.#frame = requestAnimationFrame(() => { this.flush(); });
  }

  /** Runs the work now if it was requested. */
  flush(): void {
    if (this.#timer === undefined) return;
    this.cancel();
    this.#work();
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if ('cancelAnimationFrame' in globalThis) cancelAnimationFrame(this.#frame);
  }
}
