// The part of JSON Schema that the tools and events use, as fields of a form.
import { isRecord } from '../../notification.ts';

export type Field = { readonly name: string; readonly about: string; readonly required: boolean } & (
  | { readonly kind: 'text'; readonly long: boolean; readonly maxLength: number | null }
  | { readonly kind: 'number'; readonly minimum: number | null; readonly maximum: number | null }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'list'; readonly fields: readonly Field[]; readonly max: number }
  | { readonly kind: 'json' }
);

/** The fields of an object's schema, in its order; those that are required first. */
export function fieldsOf(schema: unknown): readonly Field[] {
  if (!isRecord(schema) || !isRecord(schema.properties)) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  const fields = Object.entries(schema.properties).map(([name, property]) => fieldOf(name, property, required.includes(name)));
  return [...fields.filter((field) => field.required), ...fields.filter((field) => !field.required)];
}

function fieldOf(name: string, given: unknown, required: boolean): Field {
  const schema = isRecord(given) ? nonNull(given) : {};
  const about = typeof schema.description === 'string' ? schema.description : '';
  const base = { name, about, required };
  const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);
  if (Array.isArray(schema.enum)) return { ...base, kind: 'choice', choices: schema.enum.filter((choice) => typeof choice === 'string') };
  switch (typeOf(schema)) {
    case 'string':
      return { ...base, kind: 'text', maxLength: number(schema.maxLength), long: (number(schema.maxLength) ?? 0) > 200 };
    case 'integer':
    case 'number':
      return { ...base, kind: 'number', minimum: number(schema.minimum), maximum: number(schema.maximum) };
    case 'boolean':
      return { ...base, kind: 'boolean' };
    case 'array':
      return listOf(base, schema);
    default:
      return { ...base, kind: 'json' };
  }
}

function listOf(base: { name: string; about: string; required: boolean }, schema: Record<string, unknown>): Field {
  const fields = fieldsOf(schema.items);
  const max = typeof schema.maxItems === 'number' ? schema.maxItems : 10;
  return fields.length === 0 ? { ...base, kind: 'json' } : { ...base, kind: 'list', fields, max };
}

/** The one of several alternatives that is not null. */
function nonNull(schema: Record<string, unknown>): Record<string, unknown> {
  const alternatives = [schema.anyOf, schema.oneOf].flatMap((list): unknown[] => (Array.isArray(list) ? list : []));
  const first = alternatives.filter(isRecord).find(({ type }) => type !== 'null');
  return first ? { ...schema, ...first } : schema;
}

function typeOf({ type }: Record<string, unknown>): unknown {
  return Array.isArray(type) ? type.find((one) => one !== 'null') : type;
}
