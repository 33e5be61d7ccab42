// The hub's calls that the console makes, beside those of the person's inbox.
import { HubError, HubHttp } from '../client/http.ts';
import { isRecord } from '../notification.ts';
import type { Page } from './wire.ts';

export type Query = Readonly<Record<string, string | number | null>>;

export class Api {
  readonly http: HubHttp;
  readonly #ended: () => void;

  /** `ended` is called when the hub no longer accepts the token. */
  constructor(token: string, ended: () => void) {
    this.http = new HubHttp({ token });
    this.#ended = ended;
  }

  async get<Body>(path: string, query: Query = {}): Promise<Body> {
    return (await this.json('GET', path + search(query))) as Body;
  }

  async list<Item>(path: string, query: Query = {}): Promise<Page<Item>> {
    const body = await this.json('GET', path + search(query));
    if (!isRecord(body) || !Array.isArray(body.items)) throw new HubError(0, 'the answer is not a list');
    return { items: body.items as Item[], next_cursor: typeof body.next_cursor === 'string' ? body.next_cursor : null };
  }

  async json(method: string, path: string, body?: unknown): Promise<unknown> {
    try {
      return await this.http.json(method, path, body);
    } catch (error) {
      if (error instanceof HubError && error.status === 401) this.#ended();
      throw error;
    }
  }
}

/** The query of an address; what is null is left out. */
export function search(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== '') parameters.set(name, String(value));
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

/** One segment of a path. */
export const segment = encodeURIComponent;

/** What failed, why, and what to do. */
export function explain(what: string, error: unknown): string {
  if (!(error instanceof HubError)) return `${what}: ${error instanceof Error ? error.message : String(error)}`;
  switch (error.status) {
    case 0:
    case 502:
    case 503:
    case 504:
      return `${what}: the hub cannot be reached. Try again.`;
    case 401:
      return `${what}: your session has ended. Sign in again.`;
    case 404:
      return `${what}: it no longer exists.`;
    case 429:
      return `${what}: too many requests. Wait a moment, then try again.`;
    default:
      return [`${what}: ${said(error)}`, hint(error)].filter((part) => part !== '').join('. ');
  }
}

/** What to do, as a sentence of its own. */
function hint({ problem }: HubError): string {
  const text = problem?.hint ?? '';
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The hub's text about a field does not repeat the field's name. */
function said({ message, problem }: HubError): string {
  const field = problem?.field ?? '';
  return field === '' || message.includes(field) ? message : `${field} ${message}`;
}
