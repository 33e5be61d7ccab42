// What waits for the agents of a conversation, and for which injection point.
import { type TemplateResult, html, nothing } from 'lit';
import type { Api, Query } from '../api.ts';
import { plural, shortTime } from '../format.ts';
import type { Pending } from '../wire.ts';

/** Of how many agents it is loaded what waits: the main one, and those that the stream named last. */
const AGENTS_MAX = 10;
export const MAIN = 'main';

/** A pending notification and the agent that will read it. */
export interface Waiting {
  readonly agent: string;
  readonly pending: Pending;
}

/** Loads what waits for each agent, in the order in which it would be read. */
export async function loadWaiting(api: Api, path: string, owner: Query, agents: Iterable<string>): Promise<readonly Waiting[]> {
  const others = [...new Set(agents)].filter((agent) => agent !== MAIN).slice(1 - AGENTS_MAX);
  const lists = await Promise.all([MAIN, ...others].map(async (agent) => {
    const { items } = await api.list<Pending>(`${path}/pending`, { ...owner, agent });
    return items.map((pending) => ({ agent, pending }));
  }));
  return lists.flat();
}

/** `names` are the subscribers' names for people, by their ids. */
export function waitingView(waiting: readonly Waiting[], names: ReadonlyMap<string, string>): TemplateResult | typeof nothing {
  if (waiting.length === 0) return nothing;
  return html`<section class="waiting" aria-label="What waits"><p class="small"><b>${plural(waiting.length, 'notification')}</b> will be read:</p>
    <ul>${waiting.map(({ agent, pending }) => html`<li data-id=${pending.id}><span class="v waits"><span>${pending.inject_at}</span></span>
      ${names.get(pending.subscriber) ?? pending.subscriber} <span class="muted small"><bdi>${describe(agent, pending)}</bdi></span></li>`)}</ul></section>`;
}

/** `budget_monitor · 2 events, 3 repeats · since 15:30:01`, and the agent where it is not the main one. */
export function describe(agent: string, { source, events, repeats, since }: Pending): string {
  const counted = [events > 1 ? plural(events, 'event') : '', repeats > 0 ? plural(repeats, 'repeat') : ''].filter((part) => part !== '');
  return [agent === MAIN ? '' : `for ${agent}`, source ?? 'several sources', counted.join(', '), `since ${shortTime(since)}`]
    .filter((part) => part !== '').join(' · ');
}
