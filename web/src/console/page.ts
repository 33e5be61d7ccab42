import { LitElement } from 'lit';
import type { Readable } from '../store/observable.ts';
import type { Route } from './routes.ts';
import type { Workspace } from './workspace.ts';

/** The base of the pages. They are drawn into the console's own shadow root, so that all share its style sheets. */
export abstract class PageElement extends LitElement {
  static override properties = { workspace: { attribute: false }, route: { attribute: false } };

  declare workspace: Workspace;
  declare route: Route;

  #subscriptions: (() => void)[] = [];

  protected override createRenderRoot(): this {
    return this;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    for (const end of this.#subscriptions) end();
    this.#subscriptions = [];
  }

  /** Draws the page again after every change, until it is removed. */
  protected watch(...states: readonly Readable<unknown>[]): void {
    for (const state of states) this.onLeave(state.subscribe(() => { this.requestUpdate(); }));
  }

  /** Called when the page is removed. */
  protected onLeave(end: () => void): void {
    this.#subscriptions.push(end);
  }

  protected go(route: Route): void {
    this.dispatchEvent(new CustomEvent<Route>('go', { detail: route, bubbles: true, composed: true }));
  }
}

/** Whether a key press is meant for a field and not for the page. */
export function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return true;
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('input:not([type=checkbox]), textarea, select'));
}
