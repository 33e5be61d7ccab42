import { type TemplateResult } from 'lit';
import type { Field } from './schema.ts';
export type Values = Readonly<Record<string, unknown>>;
/** A form of the fields. `change` gets the new values; a field that is empty is left out. */
export declare function form(fields: readonly Field[], values: Values, change: (values: Values) => void, prefix?: string): TemplateResult;
