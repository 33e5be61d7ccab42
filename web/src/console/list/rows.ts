import { LitElement, type TemplateResult, html } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { Heights } from './heights.ts';

/** How many pixels of rows are drawn above and below the visible ones. */
const EXTRA = 400;
/** The end is near: the next page is loaded. In pixels. */
const NEAR_END = 1200;

export interface RowList<Item> {
  readonly items: readonly Item[];
  readonly key: (item: Item) => string;
  readonly row: (item: Item, index: number) => TemplateResult;
}

/**
 * A long list of which only the visible rows are in the page. It scrolls itself. Each row is a child with `data-key`; its
 * height is measured, and estimated until then.
 */
export class RowsElement extends LitElement {
  static override properties = { list: { attribute: false }, estimate: { type: Number }, label: {}, rowRole: { attribute: false } };

  declare list: RowList<unknown> | null;
  declare estimate: number;
  declare label: string;
  /** What the rows are to assistive technology. */
  declare rowRole: 'list' | 'rowgroup' | 'feed';

  #heights: Heights | null = null;
  #items: readonly unknown[] | null = null;
  #frame = 0;
  readonly #resized = new ResizeObserver((entries) => { this.#measure(entries.map(({ target }) => target)); });
  #observed = new Set<Element>();

  constructor() {
    super();
    this.list = null;
    this.estimate = 60;
    this.label = '';
    this.rowRole = 'list';
  }

  protected override createRenderRoot(): this {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.addEventListener('scroll', this.#scrolled, { passive: true });
    this.#resized.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.removeEventListener('scroll', this.#scrolled);
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
    const row = this.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
    row?.scrollIntoView({ block: 'nearest' });
    return row;
  }

  protected override render(): TemplateResult {
    const { list } = this;
    if (list === null) return html``;
    const heights = this.#current(list);
    const { first, end } = heights.visible(this.scrollTop, this.clientHeight || 800, EXTRA);
    const shown = list.items.slice(first, end);
    return html`<div class="window" role=${this.rowRole} aria-label=${this.label}>${
      repeat(shown, list.key, (item, at) => list.row(item, first + at))}</div>`;
  }

  protected override updated(): void {
    const [frame, heights] = [this.querySelector<HTMLElement>('.window'), this.#heights];
    if (frame === null || heights === null) return;
    const { before, after } = heights.visible(this.scrollTop, this.clientHeight || 800, EXTRA);
    frame.style.setProperty('padding-top', `${String(before)}px`);
    frame.style.setProperty('padding-bottom', `${String(after)}px`);
    this.#observe([...frame.children]);
    if (this.scrollTop + this.clientHeight + NEAR_END >= heights.total) this.dispatchEvent(new CustomEvent('near-end'));
  }

  #current(list: RowList<unknown>): Heights {
    this.#heights ??= new Heights(this.estimate);
    if (list.items !== this.#items) {
      this.#items = list.items;
      this.#heights.setKeys(list.items.map((item) => list.key(item)));
    }
    return this.#heights;
  }

  readonly #scrolled = (): void => {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => { this.requestUpdate(); });
  };

  #observe(rows: readonly Element[]): void {
    const now = new Set(rows);
    for (const row of this.#observed) if (!now.has(row)) this.#resized.unobserve(row);
    for (const row of now) if (!this.#observed.has(row)) this.#resized.observe(row);
    this.#observed = now;
  }

  #measure(targets: readonly Element[]): void {
    const rows = targets.filter((target) => target instanceof HTMLElement && target !== this);
    const changed = rows.map((row) => this.#measureRow(row as HTMLElement));
    if (changed.includes(true) || targets.includes(this)) this.requestUpdate();
  }

  #measureRow(row: HTMLElement): boolean {
    const { key } = row.dataset;
    return key !== undefined && row.isConnected && (this.#heights?.measure(key, row.getBoundingClientRect().height) ?? false);
  }
}
