// Who is signed in. The token is in memory and in the tab's session storage only. A new tab asks an open one for it.
import { HubError, HubHttp } from '../client/http.ts';
import { isRecord } from '../notification.ts';
import { Observable, type Readable } from '../store/observable.ts';

const KEY = 'bellwire:session';
const CHANNEL = 'bellwire/1 session';
/** How long a new tab waits for the answer of another, in milliseconds. */
const ASK_MS = 250;

export interface Session {
  readonly token: string;
  readonly scope: 'user' | 'admin';
  /** Null: an operator who is no person of this hub. */
  readonly user: string | null;
}

export type SignIn =
  | { readonly kind: 'waiting' }
  /** `reason`: why there is no session, if there was one or was to be one. */
  | { readonly kind: 'none'; readonly reason: string | null }
  | { readonly kind: 'signed_in'; readonly session: Session };

type TabMessage =
  | { readonly kind: 'ask' }
  | { readonly kind: 'session'; readonly session: Session }
  | { readonly kind: 'ended'; readonly token: string; readonly reason: string | null };

export class Sessions {
  readonly #state = new Observable<SignIn>({ kind: 'waiting' });
  readonly #channel = new BroadcastChannel(CHANNEL);

  constructor() {
    this.#channel.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => { this.#receive(data); });
  }

  get state(): Readable<SignIn> {
    return this.#state;
  }

  get current(): Session | null {
    const state = this.#state.get();
    return state.kind === 'signed_in' ? state.session : null;
  }

  /** Begins with the code of a link, the session of this tab, or that of another tab. */
  async start(): Promise<void> {
    const code = takeCode();
    if (code !== null) return this.signInByCode(code);
    const stored = read();
    if (stored !== null) {
      this.#keep(stored);
      return;
    }
    this.#channel.postMessage({ kind: 'ask' } satisfies TabMessage);
    await new Promise((later) => setTimeout(later, ASK_MS));
    if (this.#state.get().kind === 'waiting') this.#state.set({ kind: 'none', reason: null });
  }

  /** Exchanges the code of a sign-in link, which works once. */
  async signInByCode(code: string): Promise<void> {
    try {
      const body = await new HubHttp({}).json('POST', '/v1/sessions', { code, name: browserName(navigator.userAgent) });
      if (!isRecord(body) || typeof body.token !== 'string') throw new HubError(0, 'the answer is not a session');
      this.#keep({ token: body.token, scope: scopeOf(body.scope), user: typeof body.user_id === 'string' ? body.user_id : null });
    } catch (error) {
      this.#state.set({ kind: 'none', reason: whyNoCode(error) });
    }
  }

  /** Signs in with a token of scope `user` or `admin`. Returns why it cannot be used; null = it can. */
  async signInByToken(token: string): Promise<string | null> {
    try {
      const body = await new HubHttp({ token }).json('GET', '/v1/token');
      if (!isRecord(body) || (body.scope !== 'user' && body.scope !== 'admin')) {
        return 'This token is not for people. Use one of scope user or admin.';
      }
      this.#keep({ token, scope: body.scope, user: typeof body.user_id === 'string' ? body.user_id : null });
      return null;
    } catch (error) {
      return whyNoToken(error);
    }
  }

  /** Ends the session on the hub, if it is one there, and in every tab. */
  async signOut(): Promise<void> {
    const { current } = this;
    if (current === null) return;
    const http = new HubHttp({ token: current.token });
    await endOnHub(http).catch(() => undefined);
    this.end(current.token, 'You signed out.');
  }

  /** The hub no longer accepts this token. */
  end(token: string, reason = 'Your session has ended.'): void {
    this.#channel.postMessage({ kind: 'ended', token, reason } satisfies TabMessage);
    this.#end(token, reason);
  }

  #end(token: string, reason: string | null): void {
    if (this.current?.token !== token) return;
    sessionStorage.removeItem(KEY);
    this.#state.set({ kind: 'none', reason });
  }

  #keep(session: Session): void {
    try {
      sessionStorage.setItem(KEY, JSON.stringify(session));
    } catch {
      // Without storage, the session lasts until the page is closed.
    }
    this.#state.set({ kind: 'signed_in', session });
  }

  #receive(message: TabMessage): void {
    const { current } = this;
    if (message.kind === 'ask' && current !== null) {
      this.#channel.postMessage({ kind: 'session', session: current } satisfies TabMessage);
    }
    if (message.kind === 'session' && this.#state.get().kind === 'waiting') this.#keep(message.session);
    if (message.kind === 'ended') this.#end(message.token, message.reason);
  }
}

/** Takes the code out of the address, so that it is in no history and no picture of the screen. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  const path = location.pathname === '/sign-in' ? '/' : location.pathname;
  if (location.hash !== '' || path !== location.pathname) history.replaceState(null, '', path + location.search);
  return code;
}

function read(): Session | null {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? 'null');
    if (!isRecord(value) || typeof value.token !== 'string') return null;
    return { token: value.token, scope: scopeOf(value.scope), user: typeof value.user === 'string' ? value.user : null };
  } catch {
    return null;
  }
}

function scopeOf(value: unknown): Session['scope'] {
  return value === 'admin' ? 'admin' : 'user';
}

async function endOnHub(http: HubHttp): Promise<void> {
  const body = await http.json('GET', '/v1/sessions');
  const items: unknown[] = isRecord(body) && Array.isArray(body.items) ? body.items : [];
  const mine = items.find((item) => isRecord(item) && item.current === true);
  if (isRecord(mine) && typeof mine.id === 'string') await http.json('DELETE', `/v1/sessions/${encodeURIComponent(mine.id)}`);
}

function whyNoCode(error: unknown): string {
  const status = error instanceof HubError ? error.status : 0;
  if (status === 401 || status === 422) return 'This link was used before, or is older than ten minutes. Make a new one.';
  if (status === 429) return 'Too many wrong links from your address. Wait a few minutes, then make a new one.';
  return 'The hub cannot be reached. Open the link again.';
}

function whyNoToken(error: unknown): string {
  if (!(error instanceof HubError)) return 'This is not a token. A token begins with bw_.';
  if (error.status === 401) return 'The hub does not know this token. It may be revoked or expired.';
  return error.status === 0 ? 'The hub cannot be reached. Try again.' : error.message;
}

/**
 * Names a session for what its tabs share: a tab must not go on with the stream of another session after its own has ended.
 * Lock names are visible to every script of the origin, so it is a hash (FNV-1a, twice 32 bits) and not the token.
 */
export function sessionKey({ token }: Session): string {
  const hash = (seed: number): string => {
    let value = seed;
    for (const character of token) value = Math.imul(value ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
    return value.toString(16).padStart(8, '0');
  };
  return hash(0x811c9dc5) + hash(0x1b873593);
}

/** Names the browser in the list of sessions, such as `Firefox on Linux`. */
export function browserName(agent: string): string {
  const browsers = [['Edg/', 'Edge'], ['Firefox/', 'Firefox'], ['Chrome/', 'Chrome'], ['Safari/', 'Safari']] as const;
  const systems = [['Android', 'Android'], ['iPhone', 'iPhone'], ['iPad', 'iPad'], ['Windows', 'Windows'], ['Mac OS', 'macOS'], ['Linux', 'Linux']] as const;
  const browser = browsers.find(([mark]) => agent.includes(mark))?.[1] ?? 'Browser';
  const system = systems.find(([mark]) => agent.includes(mark))?.[1];
  return system === undefined ? browser : `${browser} on ${system}`;
}
