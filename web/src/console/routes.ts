// The addresses of the pages. They are paths, so that a link to any page can be kept, sent and opened in a new tab.

export type PageName = 'inbox' | 'conversations' | 'settings' | 'live' | 'deliveries' | 'subscribers' | 'playground' | 'overview';

export interface Route {
  readonly page: PageName;
  /** What the page shows in detail: a conversation, an event, a subscriber. */
  readonly id: string | null;
  /** Whose it is, where an id is unique only per person. */
  readonly user: string | null;
}

export const PERSON_PAGES: readonly PageName[] = ['inbox', 'conversations', 'settings'];
export const ADMIN_PAGES: readonly PageName[] = ['live', 'deliveries', 'subscribers', 'playground', 'overview'];

export const TITLES: Readonly<Record<PageName, string>> = {
  inbox: 'Inbox', conversations: 'Conversations', settings: 'Settings', live: 'Live', deliveries: 'Deliveries',
  subscribers: 'Subscribers', playground: 'Playground', overview: 'Overview',
};

/** The route of an address; null if there is no such page. */
export function routeOf(pathname: string, search = ''): Route | null {
  const [first = '', second, ...rest] = pathname.split('/').filter((part) => part !== '');
  if (first === '' || first === 'sign-in') return { page: 'inbox', id: null, user: null };
  const page = [...PERSON_PAGES, ...ADMIN_PAGES].find((name) => name === first);
  if (!page || rest.length > 0) return null;
  const id = decoded(second);
  return id === undefined ? null : { page, id, user: new URLSearchParams(search).get('user') };
}

export function pathOf({ page, id, user }: Route): string {
  const query = user === null ? '' : `?${new URLSearchParams({ user }).toString()}`;
  return `/${page}${id === null ? '' : `/${encodeURIComponent(id)}`}${query}`;
}

export function to(page: PageName, id: string | null = null, user: string | null = null): Route {
  return { page, id, user };
}

/** Null = no such part; undefined = it cannot be read. */
function decoded(part: string | undefined): string | null | undefined {
  if (part === undefined) return null;
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
