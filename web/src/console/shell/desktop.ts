// Notifications of the operating system, by the browser: only when the person allowed them, no tab is visible, and it is
// outside of the quiet hours. Only the tab that reads the stream shows them.
import type { Bellwire } from '../../bellwire.ts';
import type { Notification as Item } from '../../notification.ts';
import type { Api } from '../api.ts';
import { segment } from '../api.ts';
import { isQuiet } from '../settings/quiet-hours.ts';
import type { Settings } from '../wire.ts';

const KEY = 'bellwire:desktop';
/** Every visible tab holds this lock, so that a tab in the background knows whether the person sees one. */
const VISIBLE = 'bellwire/1 visible';
/** What is older arrived while the browser was closed; the inbox has it. In milliseconds. */
const FRESH_MS = 10 * 60_000;

export type DesktopState = 'on' | 'off' | 'blocked' | 'insecure' | 'unsupported';

export function desktopState(): DesktopState {
  if (!isSecureContext) return 'insecure';
  if (typeof Notification === 'undefined') return 'unsupported';
  if (Notification.permission === 'denied') return 'blocked';
  return Notification.permission === 'granted' && localStorage.getItem(KEY) === 'on' ? 'on' : 'off';
}

/** Asks the browser for permission. Returns the new state. */
export async function switchDesktop(on: boolean): Promise<DesktopState> {
  const state = desktopState();
  if (state === 'unsupported' || state === 'insecure') return state;
  if (on && (await Notification.requestPermission()) !== 'granted') return desktopState();
  if (on) localStorage.setItem(KEY, 'on');
  else localStorage.removeItem(KEY);
  return desktopState();
}

/** Holds the lock while the tab is visible. */
export function shareVisibility(): void {
  // Absent where the page came by plain HTTP from another machine; there are no desktop notifications there either.
  if (!('locks' in navigator)) return;
  let release: (() => void) | null = null;
  const look = (): void => {
    release?.();
    release = null;
    if (document.visibilityState !== 'visible') return;
    const held = new Promise<void>((resolve) => { release = resolve; });
    void navigator.locks.request(VISIBLE, { mode: 'shared' }, () => held);
  };
  document.addEventListener('visibilitychange', look);
  look();
}

/** Whether this kind of notification may be shown outside of the page. */
export function isWorthIt(item: Item): boolean {
  return item.kind === 'toast' || item.type === 'warning' || item.type === 'reminder';
}

export function mayInterrupt(item: Item, settings: Settings, now: number): boolean {
  const muted = item.origin !== null && settings.muted_origins.includes(item.origin);
  const switchedOff = item.kind === 'toast' && !settings.toasts.enabled;
  return !muted && !switchedOff && !(settings.quiet_hours && isQuiet(settings.quiet_hours, now));
}

/** Shows what arrives. Returns the function that ends it. */
export function showOnDesktop(bellwire: Bellwire, api: Api, person: string, open: () => void): () => void {
  return bellwire.arrived((item, leads) => {
    if (!leads || desktopState() !== 'on' || !isWorthIt(item) || Date.now() - Date.parse(item.created_at) > FRESH_MS) return;
    void show(item, api, person, open).catch(() => undefined);
  });
}

async function show(item: Item, api: Api, person: string, open: () => void): Promise<void> {
  if (!('locks' in navigator)) return;
  const { held = [] } = await navigator.locks.query();
  if (held.some(({ name }) => name === VISIBLE)) return;
  const settings = await api.get<Settings>(`/v1/users/${segment(person)}/settings`);
  if (!mayInterrupt(item, settings, Date.now())) return;
  const title = item.title ?? item.message;
  const shown = new Notification(title, { body: item.title === null ? '' : item.message, tag: item.id });
  shown.addEventListener('click', () => {
    window.focus();
    open();
    shown.close();
  });
}
