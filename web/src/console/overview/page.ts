import { type TemplateResult, html, nothing } from 'lit';
import sheet from 'uplot/dist/uPlot.min.css';
import { explain } from '../api.ts';
import { theme } from '../appearance.ts';
import { count, length, shortTime } from '../format.ts';
import { PageElement } from '../page.ts';
import type { Statistics } from '../wire.ts';
import { PlotElement } from './plot.ts';
import { plotsOf, sum, timesOf } from './series.ts';

const RANGES: readonly (readonly [number, string])[] = [[60, '1 h'], [360, '6 h'], [1440, '24 h']];
/** How often the numbers are loaded anew, in milliseconds. */
const REFRESH_MS = 10_000;

const plotStyles = new CSSStyleSheet();
plotStyles.replaceSync(sheet);

/** How much happens, how fast, and what waits. */
export class OverviewPage extends PageElement {
  static override properties = { ...PageElement.properties, minutes: { state: true }, statistics: { state: true }, problem: { state: true } };

  declare minutes: number;
  declare statistics: Statistics | null;
  declare problem: string | null;

  constructor() {
    super();
    [this.minutes, this.statistics, this.problem] = [60, null, null];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const root = this.getRootNode() as ShadowRoot;
    if (!root.adoptedStyleSheets.includes(plotStyles)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, plotStyles];
    this.watch(theme);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const redraw = (): void => { this.requestUpdate(); };
    dark.addEventListener('change', redraw);
    const timer = setInterval(() => { if (document.visibilityState === 'visible') void this.#load(); }, REFRESH_MS);
    this.onLeave(() => {
      clearInterval(timer);
      dark.removeEventListener('change', redraw);
    });
    void this.#load();
  }

  protected override render(): TemplateResult {
    const { statistics } = this;
    return html`<h1>Overview</h1><p class="sub">${statistics === null ? 'Counts per minute.' : `Counts per minute. The hub has them since ${shortTime(statistics.since)}: from its start, at most a day.`}</p>
      <div class="bar"><div class="chips" role="group" aria-label="Range">${RANGES.map(([minutes, name]) => html`<button aria-pressed=${this.minutes === minutes ? 'true' : 'false'}
        @click=${() => { this.minutes = minutes; void this.#load(); }}>${name}</button>`)}</div></div>
      ${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem} <button class="link" @click=${() => this.#load()}>Retry</button></p>`}
      ${statistics === null ? nothing : this.#numbers(statistics)}`;
  }

  #numbers(statistics: Statistics): TemplateResult {
    const times = timesOf(statistics);
    const themed = `${theme.get()} ${String(matchMedia('(prefers-color-scheme: dark)').matches)}`;
    return html`<dl class="figures">${figures(statistics).map(([name, value]) => html`<div class="card"><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
      <div class="plots">${plotsOf(statistics).map((plot) => html`<bellwire-plot class="card" .plot=${plot} .times=${times} .minutes=${this.minutes} .themed=${themed}></bellwire-plot>`)}</div>`;
  }

  async #load(): Promise<void> {
    const { minutes } = this;
    try {
      const statistics = await this.workspace.api.get<Statistics>('/v1/statistics', { minutes });
      if (minutes === this.minutes) [this.statistics, this.problem] = [statistics, null];
    } catch (error) {
      this.problem = explain('The numbers could not be loaded', error);
    }
  }
}

function figures(statistics: Statistics): readonly (readonly [string, string])[] {
  const injected = sum(statistics.injected_tokens);
  const kept = sum(statistics.saved_tokens);
  const share = injected + kept === 0 ? '' : ` (${String(Math.round((kept / (injected + kept)) * 100))} %)`;
  const last = (values: readonly (number | null)[]): number | null => values.findLast((value) => value !== null) ?? null;
  const oldest = last(statistics.oldest_pending_seconds);
  return [
    ['Events', count(sum(statistics.events))],
    ['Injected items', count(sum(statistics.injected_items))],
    ['Tokens injected', count(injected)],
    ['Tokens saved', `${count(kept)}${share}`],
    ['Pending now', count(last(statistics.pending) ?? 0)],
    ['Oldest pending', oldest === null ? '–' : length(oldest * 1000)],
  ];
}

customElements.define('bellwire-plot', PlotElement);
customElements.define('bellwire-overview-page', OverviewPage);
