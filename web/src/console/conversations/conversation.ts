import { type TemplateResult, html, nothing } from 'lit';
import { HubError } from '../../client/http.ts';
import { SharedStream } from '../../client/shared-stream.ts';
import { explain, search, segment } from '../api.ts';
import { plural, shortTime } from '../format.ts';
import { consoleIcon } from '../icons.ts';
import { PagedList, type Pages } from '../list/paged.ts';
import type { RowList, RowsElement } from '../list/rows.ts';
import { PageElement } from '../page.ts';
import { pathOf, to } from '../routes.ts';
import type { Conversation, ListedEvent, Message, Subscriber, Trace } from '../wire.ts';
import { emptyTranscript, messageView } from './message.ts';
import { type Hint, type Pending, pendingOf } from './pending.ts';
import { type Said, saidView, tell } from './tell.ts';

/** How many messages a page has, and how many pages are loaded at once. */
const PAGE = 100;
const PAGES_AT_ONCE = 10;
const MISSING = 'There is no such conversation.';

/** How long hints are collected before the page loads anew, in milliseconds. */
const REFRESH_MS = 200;

/** One conversation: what its agent read, what waits, and a field to tell it something. */
export class ConversationPanel extends PageElement {
  static override properties = {
    ...PageElement.properties, conversation: { state: true }, problem: { state: true }, pending: { state: true },
    said: { state: true }, sayProblem: { state: true }, raw: { state: true },
  };

  declare conversation: Conversation | null;
  declare problem: string | null;
  declare pending: readonly Pending[];
  declare said: readonly Said[];
  declare sayProblem: string | null;
  /** The messages that are shown as the agent read them. */
  declare raw: ReadonlySet<string>;

  #messages: PagedList<Message> | null = null;
  #stream: SharedStream | null = null;
  #refreshing: ReturnType<typeof setTimeout> | undefined;
  readonly #hints = new Map<string, Hint>();

  constructor() {
    super();
    [this.conversation, this.problem, this.pending, this.said, this.sayProblem, this.raw] = [null, null, [], [], null, new Set()];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const path = `/v1/conversations/${segment(this.route.id ?? '')}`;
    const messages = new PagedList<Message>((cursor) => this.workspace.api.list(`${path}/messages`, { ...this.#owner(), limit: PAGE, cursor }), ({ id }) => id);
    this.#messages = messages;
    this.watch(messages.state);
    const look = (): void => { this.#follow(path); };
    document.addEventListener('visibilitychange', look);
    this.onLeave(() => {
      document.removeEventListener('visibilitychange', look);
      this.#stream?.close();
    });
    look();
    void this.#start();
  }

  protected override render(): TemplateResult {
    const [messages, { conversation }] = [this.#messages?.state.get(), this];
    return html`<div class="talk-head"><a class="back" href=${pathOf(to('conversations'))} aria-label="All conversations">${consoleIcon('back', 18)}</a>
        <div><h2>${conversation?.title ?? this.route.id}</h2><p class="muted small">${conversation === null ? nothing : presence(conversation)}</p></div></div>
      ${this.problem === null ? nothing : html`<p class="problem" role="alert">${this.problem}</p>`}
      ${this.problem === MISSING ? nothing : this.#body(messages)}`;
  }

  #body(messages: Pages<Message> | undefined): TemplateResult {
    return html`${messages?.problem ? html`<p class="problem" role="alert">${messages.problem} <button class="link" @click=${() => this.#messages?.more()}>Retry</button></p>` : nothing}
      ${messages?.loaded && messages.items.length === 0 ? emptyTranscript() : html`<bellwire-rows .list=${this.#list(messages?.items ?? [])} .estimate=${72}
        label="What the agent read" .rowRole=${'feed'} @near-end=${() => { this.#nearEnd(); }}></bellwire-rows>`}
      ${this.#waiting()}
      ${this.said.length === 0 ? nothing : html`<ul class="said" aria-label="What you told the agent">${this.said.map(saidView)}</ul>`}
      ${this.#isReadOnly ? nothing : this.#field()}`;
  }

  #waiting(): TemplateResult | typeof nothing {
    if (this.pending.length === 0) return nothing;
    return html`<section class="waiting" aria-label="What waits"><p class="small"><b>${plural(this.pending.length, 'notification')}</b> will be read:</p>
      <ul>${this.pending.map(({ name, point, events, agent }) => html`<li><span class="v waits"><span>${point}</span></span> ${name}
        <span class="muted small">${events.join(', ')}${agent === 'main' ? '' : ` · ${agent}`}</span></li>`)}</ul></section>`;
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

  async #start(): Promise<void> {
    await this.#refresh();
    for (let pages = 0; pages < PAGES_AT_ONCE && this.isConnected; pages++) {
      await this.#messages?.more();
      if (this.#messages?.state.get().cursor === null) break;
    }
    await this.#toEnd();
  }

  /** Reads the stream only while the tab is visible: a browser has few connections. */
  #follow(path: string): void {
    this.#stream?.close();
    this.#stream = document.visibilityState === 'hidden' ? null : new SharedStream(this.workspace.api.http, `${path}/stream${search(this.#owner())}`, {
      event: ({ type, data }) => { this.#hinted(type, data); },
      status: () => undefined,
    });
  }

  /** `pending` names everything that waits; other hints only say that something changed. */
  #hinted(type: string, data: string): void {
    try {
      const hint = JSON.parse(data) as Hint;
      if (type === 'pending') this.#hints.set(hint.agent, hint);
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

  async #refresh(): Promise<void> {
    const { api } = this.workspace;
    const id = this.route.id ?? '';
    try {
      const [conversations, events, subscribers] = await Promise.all([
        api.list<Conversation>('/v1/conversations', { ...this.#owner(), conversation_id: id, limit: 1 }),
        api.list<ListedEvent>('/v1/events', { ...this.#owner(), conversation_id: id, limit: 100 }),
        api.list<Subscriber>('/v1/subscribers'),
      ]);
      this.conversation = conversations.items[0] ?? null;
      this.problem = this.conversation === null ? MISSING : null;
      this.pending = pendingOf(this.#hints.values(), events.items, subscribers.items);
    } catch (error) {
      this.problem = error instanceof HubError && error.status === 404 ? MISSING : explain('The conversation could not be loaded', error);
    }
  }

  /** New messages come at the end. Who looks at the end goes on to see it. */
  async #grow(): Promise<void> {
    const rows = this.querySelector<RowsElement>('bellwire-rows');
    const atEnd = rows === null || rows.scrollTop + rows.clientHeight >= rows.scrollHeight - 40;
    await this.#messages?.tail();
    await this.#readReceipts();
    if (atEnd) await this.#toEnd();
  }

  async #toEnd(): Promise<void> {
    await this.updateComplete;
    const last = this.#messages?.state.get().items.at(-1);
    if (last) await this.querySelector<RowsElement>('bellwire-rows')?.reveal(last.id);
  }

  #nearEnd(): void {
    const { loading = true, cursor = null, problem = null } = this.#messages?.state.get() ?? {};
    if (!loading && cursor !== null && problem === null) void this.#messages?.more();
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
      const said = await tell(this.workspace.api, `/v1/conversations/${segment(this.route.id ?? '')}/messages${search(this.#owner())}`, text);
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
