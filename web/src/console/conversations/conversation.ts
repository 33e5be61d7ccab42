import { type TemplateResult, html, nothing } from 'lit';
import { HubError } from '../../client/http.ts';
import { SharedStream } from '../../client/shared-stream.ts';
import { explain, search, segment } from '../api.ts';
import { shortTime } from '../format.ts';
import { consoleIcon } from '../icons.ts';
import type { RowList, RowsElement } from '../list/rows.ts';
import { PageElement } from '../page.ts';
import { pathOf, to } from '../routes.ts';
import type { Conversation, Message, Subscriber, Trace } from '../wire.ts';
import { emptyTranscript, messageView } from './message.ts';
import { type Waiting, loadWaiting, waitingView } from './pending.ts';
import { type Said, saidView, tell } from './tell.ts';
import { Transcript, type TranscriptState } from './transcript.ts';

/** How many messages a page has. */
const PAGE = 100;
const MISSING = 'There is no such conversation. Choose one from the list.';

/** How long hints are collected before the page loads anew, in milliseconds. */
const REFRESH_MS = 200;

/** One conversation: what its agent read, what waits, and a field to tell it something. */
export class ConversationPanel extends PageElement {
  static override properties = {
    ...PageElement.properties, conversation: { state: true }, problem: { state: true }, waiting: { state: true },
    said: { state: true }, sayProblem: { state: true }, raw: { state: true },
  };

  declare conversation: Conversation | null;
  declare problem: string | null;
  declare waiting: readonly Waiting[];
  declare said: readonly Said[];
  declare sayProblem: string | null;
  /** The messages that are shown as the agent read them. */
  declare raw: ReadonlySet<string>;

  #transcript: Transcript | null = null;
  #stream: SharedStream | null = null;
  #refreshing: ReturnType<typeof setTimeout> | undefined;
  /** The agents that the stream named. */
  readonly #agents = new Set<string>();
  /** The subscribers' names for people, by their ids. */
  #names: ReadonlyMap<string, string> = new Map();

  constructor() {
    super();
    [this.conversation, this.problem, this.waiting, this.said, this.sayProblem, this.raw] = [null, null, [], [], null, new Set()];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const transcript = new Transcript((cursor) =>
      this.workspace.api.list(`${this.#path}/messages`, { ...this.#owner(), order: 'newest', limit: PAGE, cursor }));
    this.#transcript = transcript;
    this.watch(transcript.state);
    const look = (): void => { this.#follow(); };
    document.addEventListener('visibilitychange', look);
    this.onLeave(() => {
      document.removeEventListener('visibilitychange', look);
      this.#stream?.close();
    });
    look();
    void transcript.older();
    void this.#nameSubscribers();
    void this.#refresh();
  }

  protected override render(): TemplateResult {
    const [transcript, { conversation }] = [this.#transcript?.state.get(), this];
    return html`<div class="talk-head"><a class="back" href=${pathOf(to('conversations'))} aria-label="All conversations">${consoleIcon('back', 18)}</a>
        <div><h2>${conversation?.title ?? this.route.id}</h2><p class="muted small">${conversation === null ? nothing : presence(conversation)}</p></div></div>
      ${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem}</p>`}
      ${this.problem === MISSING || transcript === undefined ? nothing : this.#body(transcript)}`;
  }

  #body({ messages, loaded, problem }: TranscriptState): TemplateResult {
    return html`${problem === null ? nothing : html`<p class="problem" role="alert">${problem} <button class="link" @click=${() => this.#transcript?.retry()}>Retry</button></p>`}
      ${loaded && messages.length === 0 ? emptyTranscript() : html`<bellwire-rows .list=${this.#list(messages)} .estimate=${72} .fromEnd=${true}
        label="What the agent read" .rowRole=${'feed'} @near-start=${() => { this.#nearStart(); }}></bellwire-rows>`}
      ${waitingView(this.waiting, this.#names)}
      ${this.said.length === 0 ? nothing : html`<ul class="said" aria-label="What you told the agent">${this.said.map(saidView)}</ul>`}
      ${this.#isReadOnly ? nothing : this.#field()}`;
  }

  #field(): TemplateResult {
    return html`<form class="tell" @submit=${this.#say}>
      <label class="hidden" for="tell">Tell the agent</label>
      <textarea id="tell" name="text" rows="1" maxlength="4096" placeholder="Tell the agent…" aria-describedby="tell-problem"
        @keydown=${this.#enter}></textarea><button class="primary">Send</button>
      <p id="tell-problem" class="problem" role="alert">${this.sayProblem ?? nothing}</p></form>`;
  }

  #list(items: readonly Message[]): RowList<Message> {
    const row = (message: Message): TemplateResult => messageView(message, this.raw.has(message.id), () => {
      this.raw = this.raw.has(message.id) ? new Set([...this.raw].filter((id) => id !== message.id)) : new Set([...this.raw, message.id]);
    });
    return { items, key: ({ id }) => id, row };
  }

  /** A conversation of another person is for reading only, also when a link names its owner. */
  get #isReadOnly(): boolean {
    const { isReadOnly, session } = this.workspace;
    return isReadOnly || (this.route.user !== null && this.route.user !== session.user);
  }

  /** Only an operator names the owner; a person's conversations are their own. */
  #owner(): { user_id: string | null } {
    return { user_id: this.workspace.isAdmin ? (this.route.user ?? this.workspace.person) : null };
  }

  get #path(): string {
    return `/v1/conversations/${segment(this.route.id ?? '')}`;
  }

  /** Reads the stream only while the tab is visible: a browser has few connections. */
  #follow(): void {
    this.#stream?.close();
    const { api, sessionKey } = this.workspace;
    this.#stream = document.visibilityState === 'hidden' ? null : new SharedStream(api.http, `${this.#path}/stream${search(this.#owner())}`, sessionKey, {
      event: ({ data }) => { this.#hinted(data); },
      status: () => undefined,
    });
  }

  /** A hint names an agent, and says that what waits for it changed. */
  #hinted(data: string): void {
    try {
      const { agent } = JSON.parse(data) as { agent: string };
      // The agent that was named last is the last one.
      this.#agents.delete(agent);
      this.#agents.add(agent);
      this.#refreshSoon();
    } catch {
      // An event of a kind that this version does not know.
    }
  }

  /** Loads once for all hints of a moment: a busy agent sends many. */
  #refreshSoon(): void {
    if (this.#refreshing !== undefined) return;
    this.#refreshing = setTimeout(() => {
      this.#refreshing = undefined;
      if (this.isConnected) void this.#refresh().then(() => this.#grow());
    }, REFRESH_MS);
  }

  async #nameSubscribers(): Promise<void> {
    // Without the names, the ids are shown.
    const page = await this.workspace.api.list<Subscriber>('/v1/subscribers').catch(() => null);
    this.#names = new Map(page?.items.map(({ id, name }) => [id, name]));
    this.requestUpdate();
  }

  async #refresh(): Promise<void> {
    const { api } = this.workspace;
    try {
      const [conversations, waiting] = await Promise.all([
        api.list<Conversation>('/v1/conversations', { ...this.#owner(), conversation_id: this.route.id, limit: 1 }),
        loadWaiting(api, this.#path, this.#owner(), this.#agents),
      ]);
      this.conversation = conversations.items[0] ?? null;
      this.problem = this.conversation === null ? MISSING : null;
      this.waiting = waiting;
    } catch (error) {
      this.problem = error instanceof HubError && error.status === 404 ? MISSING : explain('The conversation could not be loaded', error);
    }
  }

  /** New messages come at the end. */
  async #grow(): Promise<void> {
    await this.#transcript?.newer(this.querySelector<RowsElement>('bellwire-rows')?.atEnd ?? true);
    await this.#readReceipts();
  }

  #nearStart(): void {
    if (this.#transcript?.state.get().problem === null) void this.#transcript.older();
  }

  #enter(event: KeyboardEvent): void {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    (event.target as HTMLTextAreaElement).form?.requestSubmit();
  }

  async #say(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const field = this.querySelector<HTMLTextAreaElement>('#tell');
    const text = field?.value.trim() ?? '';
    if (field === null || text === '') return;
    try {
      const said = await tell(this.workspace.api, `${this.#path}/messages${search(this.#owner())}`, text);
      [this.said, this.sayProblem] = [[...this.said, said].slice(-5), null];
      field.value = '';
    } catch (error) {
      this.sayProblem = explain('Not sent', error);
    }
  }

  /** Asks for each message that was not read yet whether it is now. */
  async #readReceipts(): Promise<void> {
    this.said = await Promise.all(this.said.map(async (said) => {
      if (said.read !== null) return said;
      const trace = await this.workspace.api.get<Trace>(`/v1/events/${segment(said.event)}`).catch(() => null);
      const [injection] = trace?.injections ?? [];
      return injection ? { ...said, read: { at: injection.at, point: injection.point } } : said;
    }));
  }
}

function presence({ presence, pending, last_used_at: used, user_id: user }: Conversation): string {
  const state = presence === 'working' ? 'working' : `idle since ${shortTime(used)}`;
  return `${user} · ${state} · ${String(pending)} pending`;
}
