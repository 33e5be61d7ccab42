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
    const sums = new Float64Array(keys.length + 1);
    let next = 1;
    for (const key of keys) sums[next++] = this.#known.get(key) ?? this.#estimate;
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
    const keys = new Set(this.#keys);
    for (const key of this.#known.keys()) if (!keys.has(key)) this.#known.delete(key);
  }

  /** Takes over the height of a row. Returns whether it is another than before. */
  measure(index: number, height: number): boolean {
    const key = this.#keys[index];
    if (key === undefined) return false;
    const change = height - (this.#known.get(key) ?? this.#estimate);
    this.#known.set(key, height);
    if (change === 0) return false;
    for (let at = index + 1; at < this.#sums.length; at += at & -at) this.#sums[at] = (this.#sums[at] ?? 0) + change;
    return true;
  }

  /** The height of all rows before this one. */
  offset(index: number): number {
    let sum = 0;
    for (let at = Math.min(index, this.count); at > 0; at -= at & -at) sum += this.#sums[at] ?? 0;
    return sum;
  }

  /** Searches the rows: an index of all would cost more with every change of a large list. */
  indexOf(key: string): number | null {
    const index = this.#keys.indexOf(key);
    return index < 0 ? null : index;
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
