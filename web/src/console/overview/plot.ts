import { LitElement, type TemplateResult, html } from 'lit';
import uPlot from 'uplot';
import { count } from '../format.ts';
import type { Plot } from './series.ts';

const HEIGHT = 180;
/** So few values are drawn as points too: a line needs two. */
const FEW = 15;

/** One plot with axes, a legend and the values under the pointer, and the same numbers as a table. */
export class PlotElement extends LitElement {
  static override properties = { plot: { attribute: false }, times: { attribute: false }, minutes: { attribute: false }, themed: { attribute: false } };

  declare plot: Plot;
  declare times: readonly number[];
  /** How many minutes the axis has. */
  declare minutes: number;
  /** Changes with the theme, so that the plot is drawn in its colours. */
  declare themed: unknown;

  #drawn: uPlot | null = null;
  readonly #resized = new ResizeObserver(() => { this.#drawn?.setSize({ width: this.#width(), height: HEIGHT }); });

  protected override createRenderRoot(): this {
    return this;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resized.disconnect();
    this.#drawn?.destroy();
    this.#drawn = null;
  }

  protected override render(): TemplateResult {
    const { title, unit } = this.plot;
    return html`<h2>${title} <span class="muted small">${unit}</span></h2><div class="canvas" aria-hidden="true"></div>
      <details><summary class="small">Table</summary><div class="scroll-x" tabindex="0" role="region" aria-label=${`${title}, ${unit}`}>${this.#table()}</div></details>`;
  }

  protected override updated(changed: Map<string, unknown>): void {
    if (changed.has('themed') && this.#drawn !== null) {
      this.#drawn.destroy();
      this.#drawn = null;
    }
    const data: uPlot.AlignedData = [[...this.times], ...this.plot.series.map(({ values }) => [...values])];
    if (this.#drawn !== null) {
      this.#drawn.setData(data);
      return;
    }
    const place = this.querySelector<HTMLElement>('.canvas');
    if (place === null) return;
    this.#drawn = new uPlot(this.#options(), data, place);
    this.#resized.observe(this);
  }

  #table(): TemplateResult {
    const { series } = this.plot;
    return html`<table><caption class="hidden">${this.plot.title}, ${this.plot.unit}</caption><thead><tr><th scope="col">Minute</th>${series.map(({ name }) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${this.times.map((seconds, at) => html`<tr><th scope="row">${minuteOf(seconds)}</th>${series.map(({ values }) => html`<td>${values[at] ?? '–'}</td>`)}</tr>`)}</tbody></table>`;
  }

  #options(): uPlot.Options {
    const colours = getComputedStyle(this);
    const colour = (name: string): string => colours.getPropertyValue(name).trim();
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 }, font: '12px system-ui, sans-serif' };
    return {
      width: this.#width(), height: HEIGHT, cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { range: () => [(this.times.at(-1) ?? 0) - (this.minutes - 1) * 60, this.times.at(-1) ?? 0] }, y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
      axes: [{ ...axis, values: (_, seconds) => seconds.map(minuteOf) }, { ...axis, size: 52 }],
      series: [{ label: 'minute', value: (_, seconds: number | null) => (seconds === null ? '' : minuteOf(seconds)) }, ...this.plot.series.map(({ name, colour: variable }) => ({ label: name, value: (_: uPlot, value: number | null) => (value === null ? '' : count(value)), stroke: colour(variable), width: 1.5, points: { show: () => this.times.length < FEW, size: 5 }, spanGaps: false }))],
    };
  }

  #width(): number {
    return Math.max(200, this.clientWidth - 32);
  }
}

function minuteOf(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}
