/** How many ids are remembered. */
const IDS_MAX = 500;

/** The ids that were shown, so that none is shown twice. The oldest are forgotten beyond a bound. */
export class ShownIds {
  readonly #ids: Set<string>;
  readonly #key: string | null;

  /** With a key, the ids outlive the page. */
  constructor(key: string | null = null) {
    this.#key = key;
    this.#ids = new Set(key === null ? [] : stored(key));
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  add(id: string): void {
    this.#ids.delete(id);
    this.#ids.add(id);
    for (const oldest of this.#ids) {
      if (this.#ids.size <= IDS_MAX) break;
      this.#ids.delete(oldest);
    }
    if (this.#key === null) return;
    try {
      localStorage.setItem(this.#key, JSON.stringify([...this.#ids]));
    } catch {
      // Without storage, a chat that is opened again may show a toast again.
    }
  }
}

function stored(key: string): string[] {
  try {
    const ids: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(ids) ? ids.filter((id) => typeof id === 'string').slice(-IDS_MAX) : [];
  } catch {
    return [];
  }
}
