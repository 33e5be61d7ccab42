// What every page works with: the session, the calls to the hub, and the person whose data is shown.
import { Bellwire } from '../bellwire.ts';
import { Api } from './api.ts';
import { type Session, type Sessions, sessionKey } from './session.ts';

/** How many inbox items the page keeps in memory. */
const ITEMS_MAX = 100_000;
/** How many items are loaded at once. */
const PAGE = 100;
/** Who an operator without a person of their own looks at first: the default of `user.default`. */
const FIRST_PERSON = 'me';

export class Workspace {
  readonly session: Session;
  readonly api: Api;
  /** Whose inbox, conversations and settings are shown. */
  readonly person: string;
  readonly bellwire: Bellwire;
  /** What the tabs of this session share streams by. */
  readonly sessionKey: string;

  constructor(sessions: Sessions, session: Session, person: string | null) {
    this.session = session;
    this.person = person ?? session.user ?? FIRST_PERSON;
    this.sessionKey = sessionKey(session);
    this.api = new Api(session.token, () => { sessions.end(session.token); });
    this.bellwire = new Bellwire({ user: this.person, token: session.token, shareTabs: this.sessionKey, itemsMax: ITEMS_MAX, pageSize: PAGE });
  }

  get isAdmin(): boolean {
    return this.session.scope === 'admin';
  }

  /** Whether an operator looks at another person's data, which is for reading only. */
  get isReadOnly(): boolean {
    return this.session.user !== this.person;
  }

  close(): void {
    this.bellwire.close();
  }
}
