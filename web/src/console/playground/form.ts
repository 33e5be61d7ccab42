import { type TemplateResult, html, nothing } from 'lit';
import { isRecord } from '../../notification.ts';
import type { Field } from './schema.ts';

export type Values = Readonly<Record<string, unknown>>;

/** A form of the fields. `change` gets the new values; a field that is empty is left out. */
export function form(fields: readonly Field[], values: Values, change: (values: Values) => void, prefix = 'f'): TemplateResult {
  const set = (name: string, value: unknown): void => {
    const others = Object.fromEntries(Object.entries(values).filter(([other]) => other !== name));
    change(value === undefined || value === '' ? others : { ...values, [name]: value });
  };
  return html`${fields.map((field) => row(field, values[field.name], (value) => { set(field.name, value); }, `${prefix}-${field.name}`))}`;
}

function row(field: Field, value: unknown, set: (value: unknown) => void, id: string): TemplateResult {
  const label = html`${field.name}${field.required ? html`<span class="required"> (required)</span>` : nothing}`;
  const about = field.about === '' ? nothing : html`<p class="muted small" id=${`${id}-about`}>${field.about}</p>`;
  if (field.kind === 'list') return list(field, Array.isArray(value) ? value : [], set, id, about);
  return html`<div class="row"><label for=${id}>${label}</label>${input(field, value, set, id)}${about}</div>`;
}

function input(field: Field, value: unknown, set: (value: unknown) => void, id: string): TemplateResult {
  const text = (event: Event): string => (event.target as HTMLInputElement).value;
  const described = field.about === '' ? nothing : `${id}-about`;
  const shown = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
  switch (field.kind) {
    case 'text':
      return field.long
        ? html`<textarea id=${id} rows="2" maxlength=${field.maxLength ?? nothing} aria-describedby=${described} .value=${shown} @input=${(event: Event) => { set(text(event)); }}></textarea>`
        : html`<input id=${id} maxlength=${field.maxLength ?? nothing} aria-describedby=${described} .value=${shown} @input=${(event: Event) => { set(text(event)); }}>`;
    case 'number':
      return html`<input id=${id} type="number" min=${field.minimum ?? nothing} max=${field.maximum ?? nothing} aria-describedby=${described} .value=${shown}
        @input=${(event: Event) => { set(text(event) === '' ? undefined : Number(text(event))); }}>`;
    case 'boolean':
    case 'choice': {
      const choices = field.kind === 'choice' ? field.choices : ['true', 'false'];
      const read = (event: Event): unknown => (field.kind === 'choice' || text(event) === '' ? text(event) : text(event) === 'true');
      return html`<select id=${id} aria-describedby=${described} @change=${(event: Event) => { set(read(event)); }}><option value="" ?selected=${shown === ''}>–</option>
        ${choices.map((choice) => html`<option value=${choice} ?selected=${shown === choice}>${choice}</option>`)}</select>`;
    }
    case 'list':
    case 'json':
      return html`<textarea id=${id} class="mono" rows="4" spellcheck="false" aria-describedby=${described} .value=${typeof value === 'string' || value === undefined ? shown : JSON.stringify(value, null, 2)}
        @change=${(event: Event) => { set(parsed(text(event))); }}></textarea>`;
  }
}

function list(field: Field & { kind: 'list' }, items: readonly unknown[], set: (value: unknown) => void, id: string, about: unknown): TemplateResult {
  const put = (at: number, value: Values): void => { set(items.map((item, index) => (index === at ? value : item))); };
  const remove = (at: number): void => {
    const rest = items.filter((_, index) => index !== at);
    set(rest.length === 0 ? undefined : rest);
  };
  return html`<fieldset class="row"><legend>${field.name}</legend>${about}
    ${items.map((item, at) => html`<div class="nested">${form(field.fields, isRecord(item) ? item : {}, (value) => { put(at, value); }, `${id}-${String(at)}`)}
      <button type="button" @click=${() => { remove(at); }}>Remove</button></div>`)}
    ${items.length < field.max ? html`<button type="button" class="add" @click=${() => { set([...items, {}]); }}>Add</button>` : nothing}</fieldset>`;
}

/** JSON where it is, else the text, which the hub refuses by name. */
function parsed(text: string): unknown {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
