import type { Bellwire } from '../../bellwire.ts';
import type { Notification as Item } from '../../notification.ts';
import type { Api } from '../api.ts';
import type { Settings } from '../wire.ts';
export type DesktopState = 'on' | 'off' | 'blocked' | 'unsupported';
export declare function desktopState(): DesktopState;
/** Asks the browser for permission. Returns the new state. */
export declare function switchDesktop(on: boolean): Promise<DesktopState>;
/** Holds the lock while the tab is visible. */
export declare function shareVisibility(): void;
/** Whether this kind of notification may be shown outside of the page. */
export declare function isWorthIt(item: Item): boolean;
export declare function mayInterrupt(item: Item, settings: Settings, now: number): boolean;
/** Shows what arrives. Returns the function that ends it. */
export declare function showOnDesktop(bellwire: Bellwire, api: Api, person: string, open: () => void): () => void;
