import { type TemplateResult, html, nothing } from 'lit';
import { keyed } from 'lit/directives/keyed.js';
import { ago } from '../format.ts';
import { PagedList } from '../list/paged.ts';
import type { RowList } from '../list/rows.ts';
import { PageElement } from '../page.ts';
import { pathOf, to } from '../routes.ts';
import type { Conversation } from '../wire.ts';

const PAGE = 50;
/** How often the list is loaded anew while it is visible, in milliseconds. */
const REFRESH_MS = 10_000;

/** The conversations of a person, and one of them. */
export class ConversationsPage extends PageElement {
  #list: PagedList<Conversation> | null = null;

  override connectedCallback(): void {
    super.connectedCallback();
    const { api, person, isAdmin } = this.workspace;
    const list = new PagedList<Conversation>((cursor) => api.list('/v1/conversations', { user_id: isAdmin ? person : null, limit: PAGE, cursor }), ({ id, user_id: user }) => `${user} ${id}`);
    this.#list = list;
    this.watch(list.state);
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && list.state.get().items.length <= PAGE) void list.reload();
    }, REFRESH_MS);
    this.onLeave(() => { clearInterval(timer); });
    void list.more();
  }

  protected override render(): TemplateResult {
    const { id, user } = this.route;
    return html`<div class=${id !== null ? 'talks chosen' : this.#isEmpty ? 'talks none-yet' : 'talks'}>
      <section class="talk-list"><h1>Conversations</h1><p class="sub">What each agent read from Bellwire, and what waits for it.</p>
        <div class="card fill">${this.#rows()}</div></section>
      ${id === null ? this.#isEmpty ? nothing : html`<p class="empty none">Choose a conversation.</p>` : keyed(`${user ?? ''} ${id}`, html`<bellwire-conversation class="talk card fill" .workspace=${this.workspace} .route=${this.route}></bellwire-conversation>`)}
    </div>`;
  }

  #rows(): TemplateResult {
    const { items, loaded, problem } = this.#list?.state.get() ?? { items: [], loaded: false, problem: null };
    if (problem !== null) return html`<p class="problem" role="alert">${problem} <button class="link" @click=${() => this.#list?.more()}>Retry</button></p>`;
    if (loaded && items.length === 0) {
      return html`<p class="empty">No conversation yet. One begins with an agent’s first injection, or with<br><code>bellwire inject chat turn_start turn_1</code></p>`;
    }
    const list: RowList<Conversation> = { items, key: ({ id, user_id: user }) => `${user} ${id}`, row: (conversation) => this.#row(conversation) };
    return html`<bellwire-rows .list=${list} .estimate=${58} label="Conversations" @near-end=${() => this.#list?.more()}></bellwire-rows>`;
  }

  get #isEmpty(): boolean {
    return (this.#list?.state.get().items.length ?? 0) === 0;
  }

  #row(conversation: Conversation): TemplateResult {
    const { id, user_id: user, title, presence, pending, last_used_at: used } = conversation;
    const current = this.route.id === id && (this.route.user ?? this.workspace.person) === user;
    const owner = user === this.workspace.person ? null : user;
    return html`<div role="listitem" data-key=${`${user} ${id}`}><a class="talk-row" href=${pathOf(to('conversations', id, owner))} aria-current=${current ? 'true' : nothing}>
      <b><bdi>${title ?? id}</bdi></b>
      <span class=${`v ${presence === 'working' ? 'good' : ''}`}><span>${presence === 'working' ? 'working' : `idle, ${ago(used)}`}</span></span>
      <span class="muted small"><bdi>${title === null ? user : id}</bdi></span>
      ${pending === 0 ? nothing : html`<span class="v waits"><span>${pending} pending</span></span>`}</a></div>`;
  }
}
