import { LitElement, type PropertyValues, type TemplateResult, html } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { Heights } from './heights.ts';

/** How many pixels of rows are drawn above and below the visible ones. */
const EXTRA = 400;
/** The start or the end is near: the next page is loaded. In pixels. */
const NEAR = 1200;
/** How far from its end a list still counts as scrolled to the end, in pixels. */
const END = 8;
/** A list that is scrolled down no farther than this shows what comes at its start. In pixels. */
export const START = 4;

export interface RowList<Item> {
  readonly items: readonly Item[];
  readonly key: (item: Item) => string;
  readonly row: (item: Item, index: number) => TemplateResult;
}

/** The first visible row, and its distance from the top of the list in pixels. */
interface Anchor {
  readonly key: string;
  readonly top: number;
}

/**
 * A long list of which only the visible rows are in the page. It scrolls itself. Each row is a child with `data-key`; its
 * height is measured, and estimated until then. A list that is scrolled keeps its visible rows where they are when others
 * come or go above them.
 */
export class RowsElement extends LitElement {
  static override properties = {
    list: { attribute: false }, estimate: { type: Number }, label: {}, rowRole: { attribute: false }, fromEnd: { attribute: false },
  };

  declare list: RowList<unknown> | null;
  declare estimate: number;
  declare label: string;
  /** What the rows are to assistive technology. */
  declare rowRole: 'list' | 'rowgroup' | 'feed';
  /** Whether the list opens at its end, stays there until the person scrolls up, and grows at its start: a transcript. */
  declare fromEnd: boolean;

  #heights: Heights | null = null;
  #items: readonly unknown[] | null = null;
  #frame = 0;
  /** The scroll position for which the rows are drawn, and the index of the first one. */
  #top = 0;
  #first = 0;
  #anchor: Anchor | null = null;
  #atEnd = true;
  /** The scroll position that was seen last. */
  #seen = 0;
  readonly #resized = new ResizeObserver((entries) => {
    const rows = this.querySelector('.window')?.children ?? [];
    if (entries.some(({ target }) => target === this) || this.#measureRows([...rows])) this.requestUpdate();
  });
  #observed = new Set<Element>();

  constructor() {
    super();
    this.list = null;
    this.estimate = 60;
    this.label = '';
    this.rowRole = 'list';
    this.fromEnd = false;
  }

  /** Whether the end is visible. */
  get atEnd(): boolean {
    return this.scrollTop + this.clientHeight >= this.scrollHeight - END;
  }

  protected override createRenderRoot(): this {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.addEventListener('scroll', this.#scrolled, { passive: true });
    // Before the row's own listener, whose change is drawn at once.
    this.addEventListener('click', this.#clicked, { capture: true });
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.removeEventListener('scroll', this.#scrolled);
    this.removeEventListener('click', this.#clicked, { capture: true });
    this.#resized.disconnect();
    this.#observed = new Set();
    cancelAnimationFrame(this.#frame);
  }

  /** Scrolls as little as needed to show a row, and waits until it is drawn. */
  async reveal(key: string): Promise<HTMLElement | null> {
    const index = this.#heights?.indexOf(key) ?? null;
    if (this.#heights === null || index === null) return null;
    const [top, bottom] = [this.#heights.offset(index), this.#heights.offset(index + 1)];
    if (top < this.scrollTop) this.scrollTop = top;
    else if (bottom > this.scrollTop + this.clientHeight) this.scrollTop = bottom - this.clientHeight;
    this.requestUpdate();
    await this.updateComplete;
    const row = this.#row(key);
    row?.scrollIntoView({ block: 'nearest' });
    return row;
  }

  protected override update(changed: PropertyValues): void {
    if (this.list?.items !== this.#items && this.atEnd) this.#atEnd = true;
    this.#anchor = this.fromEnd || this.scrollTop > START ? this.#firstVisible() : null;
    super.update(changed);
  }

  protected override render(): TemplateResult {
    const { list } = this;
    if (list === null) return html``;
    const heights = this.#current(list);
    this.#top = this.#wanted(heights);
    const { first, end } = heights.visible(this.#top, this.#height, EXTRA);
    this.#first = first;
    const shown = list.items.slice(first, end);
    return html`<div class="window" role=${this.rowRole} aria-label=${this.label}>${
      repeat(shown, list.key, (item, at) => list.row(item, first + at))}</div>`;
  }

  protected override updated(): void {
    const [frame, heights] = [this.querySelector<HTMLElement>('.window'), this.#heights];
    if (frame === null || heights === null) return;
    const { first, end } = heights.visible(this.#top, this.#height, EXTRA);
    const rows = [...frame.children];
    // Rows that are lower than estimated leave room for more.
    if (this.#measureRows(rows)) this.requestUpdate();
    frame.style.setProperty('padding-top', `${String(heights.offset(first))}px`);
    frame.style.setProperty('padding-bottom', `${String(heights.total - heights.offset(end))}px`);
    this.#observe(rows);
    this.#place();
    if (this.scrollTop + this.clientHeight + NEAR >= heights.total) this.dispatchEvent(new CustomEvent('near-end'));
    if (this.fromEnd && this.scrollTop < NEAR) this.dispatchEvent(new CustomEvent('near-start'));
  }

  get #height(): number {
    return this.clientHeight || 800;
  }

  #current(list: RowList<unknown>): Heights {
    this.#heights ??= new Heights(this.estimate);
    if (list.items !== this.#items) {
      this.#items = list.items;
      this.#heights.setKeys(list.items.map((item) => list.key(item)));
    }
    return this.#heights;
  }

  /** The scroll position at which the same rows are visible as before. */
  #wanted(heights: Heights): number {
    if (this.fromEnd && this.#atEnd) return Math.max(0, heights.total - this.#height);
    const index = this.#anchor === null ? null : heights.indexOf(this.#anchor.key);
    return this.#anchor === null || index === null ? this.scrollTop : Math.max(0, heights.offset(index) - this.#anchor.top);
  }

  /** Scrolls to the position for which the rows were drawn. The heights that were only estimated are known now. */
  #place(): void {
    const row = this.#anchor === null ? null : this.#row(this.#anchor.key);
    if (this.fromEnd && this.#atEnd) this.scrollTop = this.scrollHeight;
    else if (row !== null && this.#anchor !== null) {
      const moved = this.#distance(row) - this.#anchor.top;
      if (Math.abs(moved) >= 1) this.scrollTop += moved;
    }
    this.#seen = this.scrollTop;
  }

  #firstVisible(): Anchor | null {
    for (const row of this.querySelectorAll<HTMLElement>('.window > [data-key]')) {
      const top = this.#distance(row);
      if (top >= this.clientHeight) return null;
      if (top + row.offsetHeight > 0) return { key: row.dataset.key ?? '', top };
    }
    return null;
  }

  #distance(row: HTMLElement): number {
    return row.getBoundingClientRect().top - this.getBoundingClientRect().top - this.clientTop;
  }

  #row(key: string): HTMLElement | null {
    return this.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
  }

  /** A row that the person opens grows downwards, also at the end. */
  readonly #clicked = (): void => { this.#atEnd = false; };

  readonly #scrolled = (): void => {
    // A list that only grew is still followed; a person who scrolls up leaves its end.
    this.#atEnd = this.atEnd || (this.#atEnd && this.scrollTop >= this.#seen);
    this.#seen = this.scrollTop;
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => { this.requestUpdate(); });
  };

  #observe(rows: readonly Element[]): void {
    const now = new Set(rows);
    for (const row of this.#observed) if (!now.has(row)) this.#resized.unobserve(row);
    for (const row of now) if (!this.#observed.has(row)) this.#resized.observe(row);
    this.#observed = now;
  }

  #measureRows(rows: readonly Element[]): boolean {
    const changed = rows.map((row, at) => this.#heights?.measure(this.#first + at, row.getBoundingClientRect().height) ?? false);
    return changed.includes(true);
  }
}
