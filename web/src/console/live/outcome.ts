// What became of an event, in a few words: the verdicts of its subscribers, and the later fates of its notifications.
import type { Fate, ListedEvent, Verdict } from '../wire.ts';

/** Why a subscriber does not want an event, in short; the trace has the whole reason. */
const FILTERS: Readonly<Record<NonNullable<Verdict['filter']>, string>> = {
  severity: 'below the severity', source: 'another source', disabled: 'switched off', not_waiting: 'nothing to replace',
  agent_saw_it: 'the agent read it itself',
};

export type Group = 'told' | 'held' | 'not';

export interface Outcome {
  readonly group: Group;
  /** The style of the badge. */
  readonly look: 'good' | 'held' | 'waits' | 'bad' | 'plain';
  readonly text: string;
}

/** The most telling outcome of an event: what was told counts more than what waits, and that more than what was left out. */
export function outcomeOf(event: Pick<ListedEvent, 'verdicts'>, fates: ReadonlyMap<string, Fate>): Outcome {
  const outcomes = event.verdicts.map((verdict) => {
    const outcome = ofVerdict(verdict, fates.get(verdict.notification_id ?? '') ?? null);
    return { outcome, rank: 5 * ['not', 'held', 'told'].indexOf(outcome.group) + ORDER.indexOf(verdict.verdict) };
  });
  const [best] = outcomes.sort((one, other) => other.rank - one.rank);
  return best?.outcome ?? { group: 'not', look: 'plain', text: 'no subscriber' };
}

/** The verdicts from the least telling to the most. */
const ORDER: readonly Verdict['verdict'][] = ['filtered', 'suppressed', 'duplicate', 'held', 'queued'];

function ofVerdict(verdict: Verdict, fate: Fate | null): Outcome {
  const later = fate === null ? null : ofFate(fate);
  if (later !== null) return later;
  switch (verdict.verdict) {
    case 'queued':
      return { group: 'held', look: 'waits', text: 'waits' };
    case 'held':
      return { group: 'held', look: 'held', text: 'held' };
    case 'duplicate':
      return { group: 'not', look: 'plain', text: `duplicate${(verdict.repeats ?? 0) > 1 ? ` ×${String(verdict.repeats)}` : ''}` };
    case 'filtered':
      return { group: 'not', look: 'plain', text: verdict.filter ? FILTERS[verdict.filter] : verdict.reason };
    case 'suppressed':
      return { group: 'not', look: 'plain', text: 'too many from its source' };
  }
}

/** Whether the fate says more than the verdict: a delivery that waits or is being sent does not. */
export function isTelling(fate: Fate): boolean {
  return ofFate(fate) !== null;
}

function ofFate({ state, call_id: call, channel, point, reason }: Fate): Outcome | null {
  switch (state) {
    case 'injected':
    case 'persisted':
      return { group: 'told', look: 'good', text: `injected${call ? ` · ${call}` : ''}` };
    case 'pending':
      return { group: 'held', look: 'waits', text: point ? `waits for ${point}` : 'waits' };
    case 'created':
    case 'read':
    case 'unread':
    case 'dismissed':
    case 'pressed':
      return { group: 'told', look: 'good', text: state === 'created' ? 'in the inbox' : state };
    case 'sent':
      return { group: 'told', look: 'good', text: `sent by ${channel ?? 'channel'}` };
    case 'failed':
      return { group: 'told', look: 'bad', text: `${channel ?? 'delivery'} failed` };
    case 'replaced':
    case 'expired':
    case 'folded':
      return { group: 'not', look: 'plain', text: reason ?? state };
    default:
      return null;
  }
}
