import { expect, test } from 'vitest';
import { SseParser } from '../src/client/sse.ts';

const STREAM = ': keep-alive\n\nevent: toast\nid: 7\ndata: {"a":\ndata:  1}\n\nretry: 5\r\ndata\r\n\r\nevent: unread\rid: 8\rdata: é\r\rid: 9\n\nevent: lost\n';
const EVENTS = [
  { type: 'toast', data: '{"a":\n 1}', id: '7' },
  { type: 'message', data: '', id: '7' },
  { type: 'unread', data: 'é', id: '8' },
];

test('events are found wherever the stream is cut', () => {
  for (let one = 0; one <= STREAM.length; one++) {
    for (const size of [1, 3, STREAM.length]) {
      const parser = new SseParser();
      const found = [...parser.push(STREAM.slice(0, one))];
      for (let at = one; at < STREAM.length; at += size) found.push(...parser.push(STREAM.slice(at, at + size)));
      expect(found).toEqual(EVENTS);
    }
  }
});

test('an event that never ends is refused', () => {
  const parser = new SseParser();
  const line = `data: ${'x'.repeat(99_000)}\n`;
  expect(() => { for (let at = 0; at < 20; at++) parser.push(line); }).toThrow('too large');
  expect(() => new SseParser().push('x'.repeat(1_000_001))).toThrow('too long');
});
