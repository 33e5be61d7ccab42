// Requests to the hub: the credentials, a time limit, and errors with a code.
import { isRecord } from '../notification.ts';
import type { Access } from './access.ts';
import type { WireProblem } from './wire.ts';

/** How long a request may take, in milliseconds. Streams are exempt. */
const TIMEOUT_MS = 15_000;

/** A request that did not succeed. `status` is 0 where no answer came. */
export class HubError extends Error {
  override readonly name = 'HubError';

  constructor(
    readonly status: number,
    message: string,
    readonly problem: WireProblem | null = null,
    /** What the hub asked to wait, in milliseconds. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

export class HubHttp {
  readonly #access: Access;

  constructor(access: Access) {
    this.#access = access;
  }

  /** Sends a request and returns the JSON of its answer. */
  async json(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<unknown> {
    const limit = AbortSignal.timeout(TIMEOUT_MS);
    const content: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
    const init: RequestInit = { method, headers: { ...content, ...headers }, signal: limit };
    if (body !== undefined) init.body = JSON.stringify(body);
    const response = await this.send(path, init);
    try {
      const text = await response.text();
      return text === '' ? null : JSON.parse(text);
    } catch (error) {
      throw new HubError(0, String(error));
    }
  }

  /** Sends a request and returns its answer; any other than 2xx is thrown. */
  async send(path: string, init: RequestInit): Promise<Response> {
    const response = await this.#fetch(path, init).catch((error: unknown) => {
      throw error instanceof HubError ? error : new HubError(0, error instanceof Error ? error.message : String(error));
    });
    if (!response.ok) throw await failure(response);
    return response;
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const { url = '', token, headers: supplied, fetch: custom } = this.#access;
    const headers = new Headers(init.headers);
    if (supplied) for (const [name, value] of new Headers(await supplied())) headers.set(name, value);
    if (token !== undefined) headers.set('authorization', `Bearer ${typeof token === 'string' ? token : await token()}`);
    const request: RequestInit = { ...init, headers, cache: 'no-store' };
    return custom ? custom(path, request) : globalThis.fetch(url.replace(/\/+$/, '') + path, request);
  }
}

async function failure(response: Response): Promise<HubError> {
  const body: unknown = await response.json().catch(() => null);
  const problem = isRecord(body) && isRecord(body.error) ? (body.error as unknown as WireProblem) : null;
  const seconds = Number(response.headers.get('retry-after') ?? NaN);
  const retryAfter = Number.isFinite(seconds) ? Math.max(0, seconds) * 1000 : null;
  return new HubError(response.status, problem?.message ?? `HTTP ${String(response.status)}`, problem, retryAfter);
}
