// What the playground sends: a call of a tool, or an event.
import { sampleEvent } from '../subscribers/samples.ts';
import type { EventType, Tool } from '../wire.ts';
import type { Values } from './form.ts';
import type { Field } from './schema.ts';
import { fieldsOf } from './schema.ts';

export interface Subject {
  readonly kind: 'tool' | 'event';
  readonly name: string;
  readonly about: string;
  readonly fields: readonly Field[];
  readonly first: Values;
}

export interface Address {
  readonly user: string;
  readonly conversation: string;
}

const SEVERITIES = ['debug', 'info', 'warning', 'error', 'critical'];

export function toolSubject({ name, description, input_schema: schema }: Tool): Subject {
  const [about = ''] = description.split(/(?<=\.)\s/);
  const fields = fieldsOf(schema);
  const first = Object.fromEntries(fields.filter(({ required }) => required).map((field) => [field.name, firstValue(field)]));
  return { kind: 'tool', name, about, fields, first };
}

function firstValue(field: Field): unknown {
  if (field.kind === 'choice') return field.choices[0];
  return field.kind === 'text' ? 'Hello from the playground' : undefined;
}

/** The known events that may be published; `user.message` comes only from the messages call. */
export function eventSubjects(types: readonly EventType[]): readonly Subject[] {
  return types.filter(({ type }) => type !== 'user.message').map((known) => {
    const { severity, payload } = sampleEvent(known);
    const fields: Field[] = known.fields.map(({ name, meaning, example }) => {
      const base = { name, about: meaning, required: false };
      if (typeof example === 'string') return { ...base, kind: 'text', long: false, maxLength: null };
      return typeof example === 'number' ? { ...base, kind: 'number', minimum: null, maximum: null } : { ...base, kind: 'json' };
    });
    return {
      kind: 'event', name: known.type, about: known.meaning, first: { severity, ...(payload as Values) },
      fields: [{ name: 'severity', about: '', required: true, kind: 'choice', choices: SEVERITIES }, ...fields],
    };
  });
}

export interface Call {
  readonly path: string;
  readonly body: unknown;
}

export function callOf({ kind, name }: Subject, values: Values, { user, conversation }: Address): Call {
  if (kind === 'tool') {
    const context = { user_id: user, ...(conversation === '' ? {} : { conversation_id: conversation }) };
    return { path: `/v1/tools/${name}`, body: { arguments: values, context } };
  }
  const { severity, ...payload } = values;
  const address = { user_id: user, ...(conversation === '' ? {} : { conversation_id: conversation }) };
  return { path: '/v1/events', body: { type: name, source: 'playground', severity: severity ?? 'info', payload, ...address } };
}
