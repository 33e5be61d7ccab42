// The heights of the rows of a long list, so that only the visible ones are drawn: a tree of sums (Fenwick), in which a
// changed height and the row at a position are found in logarithmic time.

export interface Visible {
  readonly first: number;
  /** After the last one. */
  readonly end: number;
  /** The height of the rows before the first, and of those after the last, in pixels. */
  readonly before: number;
  readonly after: number;
}

export class Heights {
  readonly #estimate: number;
  /** By key, so that a row keeps its height when others arrive before it. */
  readonly #known = new Map<string, number>();
  #keys: readonly string[] = [];
  #index = new Map<string, number>();
  #sums = new Float64Array(1);

  constructor(estimate: number) {
    this.#estimate = estimate;
  }

  get count(): number {
    return this.#keys.length;
  }

  get total(): number {
    return this.offset(this.count);
  }

  /** The rows, in their order. */
  setKeys(keys: readonly string[]): void {
    this.#keys = keys;
    this.#index = new Map(keys.map((key, at) => [key, at]));
    const sums = new Float64Array(keys.length + 1);
    for (const [at, key] of keys.entries()) sums[at + 1] = this.#known.get(key) ?? this.#estimate;
    for (let at = 1; at < sums.length; at++) {
      const parent = at + (at & -at);
      if (parent < sums.length) sums[parent] = (sums[parent] ?? 0) + (sums[at] ?? 0);
    }
    this.#sums = sums;
    this.#forget();
  }

  /** Drops the heights of rows that are gone, so that a list that changes all day does not grow. */
  #forget(): void {
    if (this.#known.size <= 2 * this.count + 1000) return;
    for (const key of this.#known.keys()) if (!this.#index.has(key)) this.#known.delete(key);
  }

  /** Returns whether the height is another than before. */
  measure(key: string, height: number): boolean {
    const change = height - (this.#known.get(key) ?? this.#estimate);
    this.#known.set(key, height);
    const index = this.#index.get(key);
    if (change === 0 || index === undefined) return false;
    for (let at = index + 1; at < this.#sums.length; at += at & -at) this.#sums[at] = (this.#sums[at] ?? 0) + change;
    return true;
  }

  /** The height of all rows before this one. */
  offset(index: number): number {
    let sum = 0;
    for (let at = Math.min(index, this.count); at > 0; at -= at & -at) sum += this.#sums[at] ?? 0;
    return sum;
  }

  indexOf(key: string): number | null {
    return this.#index.get(key) ?? null;
  }

  /** The rows between two positions, with `extra` pixels of rows around them. */
  visible(top: number, height: number, extra: number): Visible {
    const first = this.#rowAt(Math.max(0, top - extra));
    const end = Math.min(this.count, this.#rowAt(top + height + extra) + 1);
    return { first, end, before: this.offset(first), after: this.total - this.offset(end) };
  }

  /** The row that has this position. */
  #rowAt(position: number): number {
    let [at, rest] = [0, position];
    for (let step = 2 ** Math.floor(Math.log2(Math.max(1, this.count))); step >= 1; step /= 2) {
      const next = at + step;
      const sum = this.#sums[next];
      if (next > this.count || sum === undefined || sum > rest) continue;
      at = next;
      rest -= sum;
    }
    return Math.min(at, Math.max(0, this.count - 1));
  }
}
