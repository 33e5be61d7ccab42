// Reads the TOON that the hub writes (crates/core/src/render/toon.rs): a text, or a few fields that each hold a value, a list
// or a table. Anything else is a text.

export type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly name: string; readonly value: string }
  | { readonly kind: 'list'; readonly name: string; readonly values: readonly string[] }
  | { readonly kind: 'table'; readonly name: string; readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] };

const KEY = String.raw`((?:"(?:[^"\\]|\\.)*")|[A-Za-z_!][\w.]*)`;
const TABLE = new RegExp(String.raw`^${KEY}\[(\d+)\]\{(.*)\}:$`);
const LIST = new RegExp(String.raw`^${KEY}\[(\d+)\]: ?(.*)$`);
const VALUE = new RegExp(String.raw`^${KEY}: (.*)$`);

export function parseToon(content: string): readonly Part[] {
  const lines = content.split('\n');
  const parts: Part[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const table = TABLE.exec(line);
    if (table === null) {
      const part = lineOf(line);
      if (part === null) return whole(content);
      parts.push(part);
      continue;
    }
    const [, name = '', count = '0', columns = ''] = table;
    const rows = lines.slice(at + 1, at + 1 + Number(count));
    if (rows.length !== Number(count) || !rows.every((row) => row.startsWith('  '))) return whole(content);
    parts.push({ kind: 'table', name: unquoted(name), columns: cells(columns), rows: rows.map((row) => cells(row.slice(2))) });
    at += rows.length;
  }
  return parts;
}

function whole(content: string): readonly Part[] {
  return [{ kind: 'text', text: unquoted(content) }];
}

function lineOf(line: string): Part | null {
  const list = LIST.exec(line);
  if (list) return { kind: 'list', name: unquoted(list[1] ?? ''), values: cells(list[3] ?? '') };
  const value = VALUE.exec(line);
  return value ? { kind: 'value', name: unquoted(value[1] ?? ''), value: unquoted(value[2] ?? '') } : null;
}

/** Splits at commas outside of quotes. */
export function cells(line: string): string[] {
  const found = line.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+|(?<=,|^)(?=,|$)/g) ?? [];
  return found.map((cell) => unquoted(cell.trim()));
}

function unquoted(text: string): string {
  if (!/^".*"$/s.test(text)) return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : text;
  } catch {
    return text;
  }
}
