// Writes src/console/event-types.ts from the generated table of docs/events.md: the known types with their payload fields.
//
//   node event-types.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/** The text of src/console/event-types.ts. */
export function eventTypes() {
  const table = readFileSync(new URL('../docs/events.md', import.meta.url), 'utf8').split('<!-- begin of the generated table -->')[1];
  const rows = table.split('\n').map((line) => line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replaceAll('\\|', '|')));
  const types = [];
  for (const [name = '', meaning = '', example = ''] of rows) {
    const plain = (text) => text.replace(/^`|`$/g, '');
    if (name.startsWith('**')) types.push({ type: name.replaceAll('*', ''), meaning, severity: plain(example), fields: [] });
    else if (name.startsWith('`')) types.at(-1).fields.push({ name: plain(name), meaning, example: JSON.parse(plain(example)) });
  }
  const lines = types.map(({ fields, ...type }) => {
    const inner = fields.map((field) => `      ${JSON.stringify(field)},\n`).join('');
    return `  {\n    ...${JSON.stringify(type)},\n    fields: [\n${inner}    ],\n  },\n`;
  });
  return `// Written by event-types.mjs from docs/events.md.

export interface EventType {
  readonly type: string;
  readonly meaning: string;
  readonly severity: string;
  readonly fields: readonly { readonly name: string; readonly meaning: string; readonly example: unknown }[];
}

export const EVENT_TYPES: readonly EventType[] = [
${lines.join('')}];
`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(path.join(import.meta.dirname, 'src/console/event-types.ts'), eventTypes());
}
