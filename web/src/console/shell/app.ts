import { LitElement, type TemplateResult, html, nothing } from 'lit';
import { keyed } from 'lit/directives/keyed.js';
import { theme as elementTheme } from '../../elements/theme.ts';
import { theme } from '../appearance.ts';
import { ADMIN_PAGES, type Route, TITLES, pathOf, routeOf, to } from '../routes.ts';
import type { Sessions, SignIn } from '../session.ts';
import { Workspace } from '../workspace.ts';
import { showOnDesktop } from './desktop.ts';
import { pageOf } from './pages.ts';
import { pageStyles } from './page-styles.ts';
import { rail } from './rail.ts';
import { signInStyles } from './sign-in-styles.ts';
import { partStyles, shellStyles } from './styles.ts';

const VIEWED = 'bellwire:viewed';

/** The console: signing in, the rail, and the page of the address. */
export class ConsoleElement extends LitElement {
  static override styles = [elementTheme, shellStyles, partStyles, signInStyles, ...pageStyles];
  static override properties = { sessions: { attribute: false }, theme: { reflect: true }, route: { state: true } };

  declare sessions: Sessions;
  declare theme: string | null;
  declare route: Route | null;

  #workspace: Workspace | null = null;
  #signIn: SignIn = { kind: 'waiting' };
  readonly #ends: (() => void)[] = [];
  #workspaceEnds: (() => void)[] = [];

  constructor() {
    super();
    this.theme = null;
    this.route = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    const located = (): void => { this.route = routeOf(location.pathname, location.search); };
    window.addEventListener('popstate', located);
    const themed = (): void => { this.theme = theme.get() === 'system' ? null : theme.get(); };
    const signed = (): void => { this.#signed(this.sessions.state.get()); };
    this.#ends.push(() => { window.removeEventListener('popstate', located); });
    this.#ends.push(theme.subscribe(themed), this.sessions.state.subscribe(signed));
    this.addEventListener('go', (event) => { this.#go((event as CustomEvent<Route>).detail); });
    themed();
    located();
    signed();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const end of this.#ends.splice(0)) end();
    this.#open(null);
  }

  protected override render(): TemplateResult {
    const [signIn, workspace] = [this.#signIn, this.#workspace];
    if (signIn.kind === 'none') {
      return html`<bellwire-sign-in .sessions=${this.sessions} .reason=${signIn.reason}></bellwire-sign-in>`;
    }
    if (workspace === null) return html`<p class="empty" role="status">Signing in…</p>`;
    return html`<div class="app" @click=${this.#clicked}>
      ${rail({
        workspace, route: this.route, signOut: () => { void this.sessions.signOut(); }, view: (person) => { this.#view(person); },
      })}
      <div class="stage">${this.#connection(workspace)}<main id="page" tabindex="-1">${this.#page(workspace)}</main></div>
      ${workspace.isReadOnly ? nothing : html`<bellwire-toaster .bellwire=${workspace.bellwire} .theme=${this.theme}></bellwire-toaster>`}
    </div>`;
  }

  protected override updated(): void {
    const unread = this.#workspace?.bellwire.inbox.get().unread ?? 0;
    const page = this.#workspace === null ? 'Sign in' : this.route === null ? 'Not found' : TITLES[this.route.page];
    document.title = `${unread > 0 ? `(${String(unread)}) ` : ''}${page} · Bellwire`;
  }

  #page(workspace: Workspace): TemplateResult {
    const { route } = this;
    if (route === null || (ADMIN_PAGES.includes(route.page) && !workspace.isAdmin)) return notFound();
    return html`${keyed(`${workspace.person} ${route.page}`, pageOf(workspace, route))}`;
  }

  /** A lost connection is one quiet line. */
  #connection(workspace: Workspace): TemplateResult | typeof nothing {
    const lost = workspace.bellwire.inbox.get().connection === 'reconnecting';
    return lost ? html`<p class="line" role="status">Reconnecting… what arrives meanwhile will be here.</p>` : nothing;
  }

  #signed(signIn: SignIn): void {
    this.#signIn = signIn;
    if (signIn.kind !== 'signed_in') this.#open(null);
    else if (this.#workspace?.session !== signIn.session) {
      const viewed = signIn.session.scope === 'admin' ? sessionStorage.getItem(VIEWED) : null;
      this.#open(new Workspace(this.sessions, signIn.session, viewed));
    }
    this.requestUpdate();
  }

  /** Shows another person's data. */
  #view(person: string): void {
    const session = this.sessions.current;
    if (session === null || person === this.#workspace?.person) return;
    sessionStorage.setItem(VIEWED, person);
    this.#open(new Workspace(this.sessions, session, person));
    if (this.route?.id !== null && this.route?.page === 'conversations') this.#go(to('conversations'));
  }

  #open(workspace: Workspace | null): void {
    for (const end of this.#workspaceEnds) end();
    this.#workspaceEnds = [];
    this.#workspace?.close();
    this.#workspace = workspace;
    if (workspace !== null) this.#watch(workspace);
    this.requestUpdate();
  }

  #watch(workspace: Workspace): void {
    const { bellwire, api, person, session } = workspace;
    this.#workspaceEnds.push(bellwire.inbox.subscribe(() => {
      if (bellwire.inbox.get().connection === 'ended') this.sessions.end(session.token);
      this.requestUpdate();
    }));
    if (!workspace.isReadOnly) this.#workspaceEnds.push(showOnDesktop(bellwire, api, person, () => { this.#go(to('inbox')); }));
  }

  #go(route: Route): void {
    const path = pathOf(route);
    if (path !== location.pathname + location.search) history.pushState(null, '', path);
    const samePage = route.page === this.route?.page;
    this.route = route;
    this.renderRoot.querySelector('details.more')?.removeAttribute('open');
    // A new page is read from its heading on.
    if (!samePage) void this.updateComplete.then(() => { this.renderRoot.querySelector<HTMLElement>('#page')?.focus({ preventScroll: true }); });
  }

  /** A link to a page of the console changes only the address. */
  #clicked(event: MouseEvent): void {
    const link = event.composedPath().find((target) => target instanceof HTMLAnchorElement);
    if (!link || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.origin !== location.origin || link.target !== '') return;
    const route = routeOf(link.pathname, link.search);
    if (route === null) return;
    event.preventDefault();
    this.#go(route);
  }
}

function notFound(): TemplateResult {
  return html`<div class="scrolls"><h1>Not found</h1><p class="sub">There is no such page here, or it is not for you.
    Go to the <a href="/inbox">inbox</a>.</p></div>`;
}
