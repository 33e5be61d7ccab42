import { type TemplateResult, html } from 'lit';

/** How long a text stays in its live region, in milliseconds. */
const STAYS_MS = 10_000;
/** A region must be in the page before its text, also right after it was moved. */
const DELAY_MS = 100;
/** How many texts wait in the regions at most. */
const TEXTS_MAX = 5;

interface Announced {
  readonly text: string;
  readonly assertive: boolean;
}

/** Says texts to screen readers. The two live regions are in the page from the beginning. */
export class Announcer {
  readonly #changed: () => void;
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #texts: readonly Announced[] = [];

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  say(text: string, assertive: boolean): void {
    const announced = { text, assertive };
    this.#later(DELAY_MS, () => { this.#texts = [...this.#texts, announced].slice(-TEXTS_MAX); });
    this.#later(DELAY_MS + STAYS_MS, () => { this.#texts = this.#texts.filter((other) => other !== announced); });
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#texts = [];
  }

  render(): TemplateResult {
    const region = (assertive: boolean): TemplateResult => html`<div class="hidden" role="status" aria-live=${
      assertive ? 'assertive' : 'polite'} aria-atomic="false">${
      this.#texts.filter((one) => one.assertive === assertive).map(({ text }) => html`<p>${text}</p>`)}</div>`;
    return html`${region(false)}${region(true)}`;
  }

  #later(delay: number, change: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      change();
      this.#changed();
    }, delay);
    this.#timers.add(timer);
  }
}
