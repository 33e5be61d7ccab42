import { type TemplateResult, html, nothing } from 'lit';
import { icon } from '../../elements/icons.ts';
import { consoleIcon } from '../icons.ts';
import { ADMIN_PAGES, PERSON_PAGES, type PageName, type Route, TITLES, pathOf, to } from '../routes.ts';
import type { Workspace } from '../workspace.ts';

export interface RailView {
  readonly workspace: Workspace;
  readonly route: Route | null;
  readonly signOut: () => void;
  readonly view: (person: string) => void;
}

/** The pages that the bottom bar of a phone shows; the others are behind «More». */
const FIRST: readonly PageName[] = ['inbox', 'conversations', 'live', 'deliveries'];

/** The rail at the left; a bottom bar on a phone. */
export function rail(view: RailView): TemplateResult {
  const { isAdmin } = view.workspace;
  const primary = isAdmin ? FIRST : PERSON_PAGES;
  const link = (page: PageName): TemplateResult => pageLink(view, page, primary.includes(page) ? '' : 'secondary');
  return html`<nav class="rail" aria-label="Main">
    <div class="brand">${icon('bell', 18)} Bellwire</div>
    ${PERSON_PAGES.map(link)}
    ${isAdmin ? html`<h2>Operate</h2>${ADMIN_PAGES.map(link)}` : nothing}
    ${foot(view, 'wide')}
    <details class="more"><summary>${consoleIcon('more', 18)}<span>More</span></summary>
      <div class="sheet">${[...PERSON_PAGES, ...(isAdmin ? ADMIN_PAGES : [])].filter((page) => !primary.includes(page)).map((page) =>
        pageLink(view, page, ''))}${foot(view, 'sheet')}</div></details>
  </nav>`;
}

function pageLink({ workspace, route }: RailView, page: PageName, kind: string): TemplateResult {
  const unread = page === 'inbox' ? (workspace.bellwire.inbox.get().unread ?? 0) : 0;
  const count = unread === 0 ? nothing : html`<span class="count">${unread > 99 ? '99+' : unread}<span class="hidden"> unread</span></span>`;
  return html`<a class=${kind} href=${pathOf(to(page))} aria-current=${route?.page === page ? 'page' : nothing}>${
    consoleIcon(page, 17)}<span>${TITLES[page]}</span>${count}</a>`;
}

function foot({ workspace, view, signOut }: RailView, place: string): TemplateResult {
  const { session, person, isAdmin } = workspace;
  const name = session.user ?? 'operator';
  return html`<div class="foot">
    ${isAdmin ? html`<bellwire-person-switch .workspace=${workspace} .place=${place}
      @view=${(event: CustomEvent<string>) => { view(event.detail); }}></bellwire-person-switch>` : nothing}
    <div class="who">${isAdmin ? html`<bdi>${name} · admin</bdi>` : html`<bdi>${person}</bdi>`}
      <button class="icon" aria-label="Sign out" title="Sign out" @click=${signOut}>${consoleIcon('signOut')}</button></div>
  </div>`;
}
