import { type TemplateResult, html, nothing } from 'lit';
import { explain, segment } from '../api.ts';
import { count, plural } from '../format.ts';
import { consoleIcon } from '../icons.ts';
import { PageElement } from '../page.ts';
import { pathOf, to } from '../routes.ts';
import type { Settings, Subscriber } from '../wire.ts';
import { sentence } from './sentence.ts';

/** Who listens for what, how often in the last day, and whether it is switched on. */
export class SubscribersPage extends PageElement {
  static override properties = { ...PageElement.properties, items: { state: true }, problem: { state: true }, notes: { state: true } };

  declare items: readonly Subscriber[] | null;
  declare problem: string | null;
  /** What became of a switch, by subscriber. */
  declare notes: ReadonlyMap<string, string>;

  constructor() {
    super();
    [this.items, this.problem, this.notes] = [null, null, new Map()];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    void this.#load();
  }

  protected override render(): TemplateResult {
    const chosen = this.items?.find(({ id }) => id === this.route.id) ?? null;
    return html`<div class=${chosen === null ? 'subscribers' : 'subscribers chosen'}>
      <section class="scrolls list"><h1>Subscribers</h1>
        <p class="sub">A subscriber decides which events become a notification, for whom and when. The switches are those of <bdi>${this.workspace.person}</bdi>.</p>
        ${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem} <button class="link" @click=${() => this.#load()}>Retry</button></p>`}
        ${this.items?.map((subscriber) => this.#row(subscriber))}</section>
      ${chosen === null ? nothing : html`<bellwire-try-out class="card scrolls" .workspace=${this.workspace} .route=${this.route} .subscriber=${chosen}></bellwire-try-out>`}
    </div>`;
  }

  #row(subscriber: Subscriber): TemplateResult {
    const { id, name, problem } = subscriber;
    return html`<article class="card subscriber" data-id=${id} aria-current=${id === this.route.id ? 'true' : nothing}>
      <div><h2 class="minor named">${name} <span class="muted mono">${id}</span></h2>
        <p>${sentence(subscriber)}</p>
        ${problem ? html`<p class="problem" role="alert">Its file has a mistake; the last good version is used: ${problem}</p>` : nothing}
        <p class="muted small">${counts(subscriber)}</p>
        ${this.notes.has(id) ? html`<p class="small" role="status">${this.notes.get(id)}</p>` : nothing}</div>
      <div class="acts">${this.#switch(subscriber)}
        <a class="button" href=${pathOf(to('subscribers', id))}>Try out<span class="hidden"> ${name}</span></a></div>
    </article>`;
  }

  #switch({ id, name, core, enabled }: Subscriber): TemplateResult {
    const locked = core || this.workspace.isReadOnly;
    const why = core ? 'Core: it cannot be switched off, because the agent would miss what it must know.' : 'Only the person can switch it.';
    return html`<button class="switch" role="switch" aria-checked=${enabled ? 'true' : 'false'} aria-label=${name} aria-disabled=${locked ? 'true' : 'false'}
      aria-describedby=${locked ? `why-${id}` : nothing} @click=${() => { if (!locked) void this.#toggle(id, !enabled); }}><span class="knob"></span>${core ? consoleIcon('lock', 12) : nothing}</button>
      ${locked ? html`<span class="tip small" id=${`why-${id}`}>${why}</span>` : nothing}`;
  }

  async #load(): Promise<void> {
    const { api, person, isAdmin } = this.workspace;
    try {
      this.items = (await api.list<Subscriber>('/v1/subscribers', { user_id: isAdmin ? person : null })).items;
      this.problem = null;
    } catch (error) {
      this.problem = explain('Subscribers could not be loaded', error);
    }
  }

  async #toggle(id: string, on: boolean): Promise<void> {
    const { api, person } = this.workspace;
    const path = `/v1/users/${segment(person)}/settings`;
    try {
      const { disabled_subscribers: disabled } = await api.get<Settings>(path);
      const next = on ? disabled.filter((other) => other !== id) : [...new Set([...disabled, id])];
      await api.json('PATCH', path, { disabled_subscribers: next });
      this.items = this.items?.map((other) => (other.id === id ? { ...other, enabled: on } : other)) ?? null;
      this.#note(id, on ? 'Switched on, from the next event on.' : 'Switched off, from the next event on.');
    } catch (error) {
      this.#note(id, explain('Not changed', error));
    }
  }

  #note(id: string, text: string): void {
    this.notes = new Map([...this.notes, [id, text]]);
  }
}

/** The verdicts of the last day. */
function counts({ last_24h: day }: Subscriber): string {
  if (!day) return '';
  if (day.events === 0) return 'Last 24 h: no event.';
  const parts = [[day.queued + day.held, 'taken'], [day.duplicate, 'duplicate'], [day.filtered, 'filtered'], [day.suppressed, 'suppressed']] as const;
  const said = parts.filter(([number]) => number > 0).map(([number, word]) => `${count(number)} ${word}`);
  return `Last 24 h: ${[plural(day.events, 'event'), ...said, `${count(day.injected)} injected`].join(', ')}.`;
}
