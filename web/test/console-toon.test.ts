import { describe, expect, test } from 'vitest';
import { cells, parseToon } from '../src/console/conversations/toon.ts';

describe('a message that an agent read', () => {
  test('is a value, a list or a table', () => {
    expect(parseToon('tool_fail: vault_search timeout')).toEqual([{ kind: 'value', name: 'tool_fail', value: 'vault_search timeout' }]);
    expect(parseToon('files_modified[2]: src/a b.rs,"x, y"')).toEqual([{ kind: 'list', name: 'files_modified', values: ['src/a b.rs', 'x, y'] }]);
    expect(parseToon('budget_warns[2]{budget,percent}:\n  token,96\n  "a,\\"b\\"",\nnote: done')).toEqual([
      { kind: 'table', name: 'budget_warns', columns: ['budget', 'percent'], rows: [['token', '96'], ['a,"b"', '']] },
      { kind: 'value', name: 'note', value: 'done' },
    ]);
  });

  test('is a text where it is quoted, or where it is nothing else', () => {
    expect(parseToon('"please, \\"stop\\": now\\nnow"')).toEqual([{ kind: 'text', text: 'please, "stop": now\nnow' }]);
    for (const text of ['hello', '', 'a\nb', 'rows[3]{a}:\n  1', 'x[2]{a}:\n1\n2', '"broken', '<b>: x']) {
      expect(parseToon(text), text).toEqual([{ kind: 'text', text }]);
    }
  });

  test('cells are split outside of quotes', () => {
    expect(cells('a,"b,c",,d')).toEqual(['a', 'b,c', '', 'd']);
  });
});
