// The trace of an event as a path: what happened to it, when, and why.
import { later, withTimes } from '../format.ts';
import type { Fate, Trace } from '../wire.ts';

export interface Step {
  /** When it happened, for the order. */
  readonly at: string;
  readonly title: string;
  /** Who did it, such as a subscriber. */
  readonly by: string | null;
  readonly reason: string | null;
  /** Text that an agent or a person read, exactly. */
  readonly text: string | null;
  /** The time since the event was accepted. */
  readonly time: string;
}

const VERDICTS = {
  queued: 'Queued', held: 'Held', duplicate: 'Counted as a repeat', filtered: 'Not told', suppressed: 'Suppressed',
} as const;

export function stepsOf(trace: Trace): readonly Step[] {
  const start = trace.accepted_at;
  const step = (at: string | null, title: string, more: Partial<Step> = {}): Step => {
    const time = at ?? start;
    return { by: null, reason: null, text: null, ...more, at: time, title, time: later(start, time) };
  };
  const accepted = step(start, 'Accepted', { reason: asked(trace) });
  const verdicts = trace.verdicts.map((verdict) => step(start, VERDICTS[verdict.verdict], {
    by: verdict.subscriber === '*' ? null : verdict.subscriber, reason: withTimes([verdict.reason, verdict.hint ?? ''].filter((part) => part !== '').join('. ')),
  }));
  const rest = [...superseded(trace, step), ...notifications(trace, step), ...told(trace, step)];
  return [accepted, ...verdicts, ...rest.sort((one, other) => Date.parse(one.at) - Date.parse(other.at))];
}

/** The states that the event's notifications have now. */
export function fatesOf({ id, user_id: user, notifications }: Trace): readonly Fate[] {
  return notifications.map(({ id: notification, subscriber, conversation_id: conversation, agent, state, call_id: call, inject_at: point, created_at: created, ended_at: ended, reason }) => ({
    notification_id: notification, event_ids: [id], user_id: user ?? '', conversation_id: conversation, agent, subscriber, state, at: ended ?? created, call_id: call, point, reason,
  }));
}

type NewStep = (at: string | null, title: string, more?: Partial<Step>) => Step;

function asked({ filtered, verdicts }: Trace): string {
  const listening = new Set(verdicts.map(({ subscriber }) => subscriber).filter((id) => id !== '*')).size;
  return `${String(filtered + listening)} subscribers asked, ${String(listening)} ${listening === 1 ? 'listens' : 'listen'}`;
}

function superseded(trace: Trace, step: NewStep): Step[] {
  return trace.superseded.map(({ subscriber, by, at }) => step(at, 'Replaced by a newer event', { by: subscriber, reason: by }));
}

function notifications(trace: Trace, step: NewStep): Step[] {
  return trace.notifications.flatMap((notification) => {
    const { subscriber, inject_at: point, state, call_id: call, content, ended_at: ended, reason, template_error: broken } = notification;
    const waits = step(notification.created_at, `Waits for ${point}`, { by: subscriber, reason: broken ? `The template failed: ${broken}` : null });
    const isRead = state === 'injected' || state === 'persisted';
    const where = trace.injections.find(({ call_id: id }) => id === call);
    const title = isRead ? `Injected at ${where?.point ?? point}${call === null ? '' : `, ${call}`}` : upper(state);
    return state === 'pending' ? [waits] : [waits, step(ended, title, { by: subscriber, reason: isRead ? null : reason, text: content })];
  });
}

function told(trace: Trace, step: NewStep): Step[] {
  return trace.told.flatMap(({ notification, due_at: due, deliveries }) => [
    notification
      ? step(notification.created_at, `Shown to ${trace.user_id ?? 'the person'}`, { text: [notification.title, notification.message].filter((part) => part !== null).join('\n') })
      : step(due, 'Waits for the person', { reason: 'the hourly limit is reached' }),
    ...deliveries.map(({ channel, state, reason, ended_at: ended, not_before: planned }) =>
      step(ended ?? planned, `${upper(channel)}: ${state}`, { reason })),
  ]);
}

function upper(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
