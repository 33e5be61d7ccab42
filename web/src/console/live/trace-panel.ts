import { type TemplateResult, html, nothing } from 'lit';
import { icon } from '../../elements/icons.ts';
import { PageElement } from '../page.ts';
import { explain, segment } from '../api.ts';
import { exactTime } from '../format.ts';
import { pathOf, to } from '../routes.ts';
import { severityMark } from '../severity.ts';
import type { Trace } from '../wire.ts';
import { type Step, stepsOf } from './trace.ts';

/** Why anyone was, or was not, told about one event. */
export class TracePanel extends PageElement {
  static override properties = { ...PageElement.properties, event: {}, version: { attribute: false }, trace: { state: true }, problem: { state: true } };

  /** The id of the event. */
  declare event: string;
  /** Changes when the event has a new fate. */
  declare version: unknown;
  declare trace: Trace | null;
  declare problem: string | null;

  constructor() {
    super();
    this.trace = null;
    this.problem = null;
  }

  protected override willUpdate(changed: Map<string, unknown>): void {
    if (changed.has('event') || changed.has('version')) void this.#load(this.event);
  }

  protected override render(): TemplateResult {
    return html`<aside class="card pad trace" aria-label="Trace">
      <button class="icon close" aria-label="Close the trace" @click=${() => { this.go(to('live')); }}>${icon('close')}</button>
      ${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem}</p>`}
      ${this.trace === null ? nothing : traced(this.trace)}</aside>`;
  }

  async #load(id: string): Promise<void> {
    try {
      const trace = await this.workspace.api.get<Trace>(`/v1/events/${segment(id)}`);
      if (id !== this.event) return;
      [this.trace, this.problem] = [trace, null];
      this.dispatchEvent(new CustomEvent<Trace>('traced', { detail: trace }));
    } catch (error) {
      if (id === this.event) [this.trace, this.problem] = [null, explain('The trace could not be loaded', error)];
    }
  }
}

function traced(trace: Trace): TemplateResult {
  const { type, source, severity, user_id: user, conversation_id: conversation, agent } = trace;
  const link = conversation === null ? nothing
    : html`, <a href=${pathOf(to('conversations', conversation, user))}>${conversation}</a> / ${agent}`;
  return html`<h2 class="minor">${severityMark(severity)}${type}</h2>
    <p class="muted">from <bdi>${source}</bdi>${user === null ? nothing : html`, to <bdi>${user}</bdi>`}${link}</p>
    <pre class="mono" tabindex="0">${JSON.stringify(trace.payload, null, 2)}</pre>
    <ol class="path">${stepsOf(trace).map((step, at) => stepView(step, at, trace))}</ol>`;
}

function stepView(step: Step, at: number, trace: Trace): TemplateResult {
  return html`<li><span class="t">${at === 0 ? exactTime(trace.accepted_at) : step.time}</span><b>${step.title}</b>${
    step.by === null ? nothing : html` <span class="muted">by ${step.by}</span>`}
    ${step.reason === null || step.reason === '' ? nothing : html`<p dir="auto">${step.reason}</p>`}
    ${step.text === null ? nothing : html`<pre class="mono" dir="auto" tabindex="0">${step.text}</pre>`}</li>`;
}
