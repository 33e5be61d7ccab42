import { expect, test } from 'vitest';
import { clean, length, oneLine } from '../src/chat/text.ts';

test('deceptive characters are removed and others stay, as the hub does it', () => {
  expect(clean('  a\r\nb\0\u001b[31mc\u202ed\t ')).toBe('a\nb[31mcd');
  const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}';
  expect(clean(family)).toBe(family);
  const persian = '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645';
  expect(clean(persian)).toBe(persian);
  const scotland = '\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}';
  expect(clean(`${scotland}\u{e0041}a\u{e0042}`)).toBe(`${scotland}a`);
  expect(clean('a\u2028b\u0085c\u2066d\u2069\ufeff')).toBe('a\nb\ncd');
  expect(clean('\ud800a')).toBe('\ufffda');
});

test('a line has no breaks, and lengths count characters', () => {
  expect(oneLine(' a\r\nBcc: x@y \t z ')).toBe('a Bcc: x@y z');
  expect(oneLine('')).toBe('');
  expect(length('a\u{1f514}')).toBe(2);
});
