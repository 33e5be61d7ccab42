/** A server-sent event. */
export interface SseEvent {
  readonly type: string;
  readonly data: string;
  /** The id of the stream's position, as of this event. */
  readonly id: string | null;
}

/** The longest line and the largest event that are accepted, in UTF-16 units. */
const SIZE_MAX = 1_000_000;

/** Parses a stream of server-sent events that arrives in pieces of any size (HTML standard, 9.2.6). */
export class SseParser {
  #rest = '';
  #type = '';
  #data: string[] = [];
  #size = 0;
  #id: string | null = null;

  /** Returns the events that are complete with this piece. */
  push(piece: string): SseEvent[] {
    const events: SseEvent[] = [];
    this.#rest += piece;
    for (;;) {
      const end = this.#rest.search(/[\r\n]/);
      // A carriage return at the end may be the first half of a line break.
      if (end < 0 || (this.#rest[end] === '\r' && end === this.#rest.length - 1)) break;
      const line = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end + (this.#rest.startsWith('\r\n', end) ? 2 : 1));
      const event = line === '' ? this.#finish() : this.#field(line);
      if (event) events.push(event);
    }
    if (this.#rest.length > SIZE_MAX) throw new Error('a line of the stream is too long');
    return events;
  }

  #field(line: string): null {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.#type = value;
    if (name === 'id' && !value.includes('\0')) this.#id = value;
    if (name === 'data') this.#add(value);
    return null;
  }

  #add(value: string): void {
    this.#size += value.length;
    if (this.#size > SIZE_MAX) throw new Error('an event of the stream is too large');
    this.#data.push(value);
  }

  #finish(): SseEvent | null {
    const event = { type: this.#type || 'message', data: this.#data.join('\n'), id: this.#id };
    const empty = this.#data.length === 0;
    [this.#type, this.#data, this.#size] = ['', [], 0];
    return empty ? null : event;
  }
}
