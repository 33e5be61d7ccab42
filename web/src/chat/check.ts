// Checks the `notification` of a tool's result against the limits of `show_notification`. What breaks one is not shown.
import { type Action, type Notification, POSITIONS, isRecord } from '../notification.ts';
import { clean, length, oneLine } from './text.ts';

const ID_MAX = 128;
const MESSAGE_MAX = 500;
const TITLE_MAX = 100;
const DURATION_MAX = 30_000;
const DURATION_DEFAULT = 5_000;
const ACTIONS_MAX = 3;
const LABEL_MAX = 50;
const PROMPT_MAX = 200;
const SEVERITIES = ['info', 'success', 'warning', 'error'] as const;

/** Thrown with the first rule that is broken. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** Reads the notification; throws [`Refused`] if a field breaks a limit. */
export function checkNotification(value: unknown): Notification {
  if (!isRecord(value)) throw new Refused('notification is not an object');
  return {
    id: text(value.id, 'id', ID_MAX),
    from: 'page',
    kind: 'toast',
    type: SEVERITIES.find((severity) => severity === value.severity) ?? refuse(`severity must be one of: ${SEVERITIES.join(', ')}`),
    origin: null,
    source: null,
    conversation_id: null,
    title: title(value.title),
    message: message(value.message),
    duration: duration(value.duration),
    position: position(value.position),
    actions: actions(value.actions),
    created_at: typeof value.timestamp === 'string' ? value.timestamp : '',
    read_at: null,
    dismissed_at: null,
    deliveries: [],
  };
}

function message(value: unknown): string {
  const cleaned = typeof value === 'string' ? clean(value) : '';
  return within(cleaned, 1, MESSAGE_MAX) ? cleaned : refuse(`message must have 1 to ${String(MESSAGE_MAX)} characters`);
}

function title(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const line = typeof value === 'string' ? oneLine(value) : refuse('title must be a text');
  return within(line, 0, TITLE_MAX) ? line || null : refuse(`title must have at most ${String(TITLE_MAX)} characters`);
}

function duration(value: unknown): number {
  if (value === undefined || value === null) return DURATION_DEFAULT;
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= DURATION_MAX;
  return fits ? value : refuse(`duration must be 0 to ${String(DURATION_MAX)} milliseconds`);
}

function position(value: unknown): Notification['position'] {
  if (value === undefined || value === null) return 'top-right';
  return POSITIONS.find((one) => one === value) ?? refuse(`position must be one of: ${POSITIONS.join(', ')}`);
}

function actions(value: unknown): Action[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > ACTIONS_MAX) throw new Refused(`actions must be at most ${String(ACTIONS_MAX)} buttons`);
  return value.map(action);
}

function action(value: unknown, at: number): Action {
  const name = `actions[${String(at)}]`;
  if (!isRecord(value)) throw new Refused(`${name} is not an object`);
  const label = text(value.label, `${name}.label`, LABEL_MAX);
  if (value.action === 'dismiss') return { label, action: 'dismiss', prompt: null, pressed_at: null };
  if (value.action !== 'prompt') throw new Refused(`${name}.action must be prompt or dismiss`);
  return { label, action: 'prompt', prompt: text(value.prompt, `${name}.prompt`, PROMPT_MAX), pressed_at: null };
}

function text(value: unknown, name: string, max: number): string {
  const line = typeof value === 'string' ? oneLine(value) : '';
  return within(line, 1, max) ? line : refuse(`${name} must have 1 to ${String(max)} characters`);
}

function within(value: string, min: number, max: number): boolean {
  const count = length(value);
  return count >= min && count <= max;
}

function refuse(reason: string): never {
  throw new Refused(reason);
}
