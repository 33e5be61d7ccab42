import { LitElement, css } from 'lit';
import type { Bellwire } from '../bellwire.ts';
import { page } from '../page.ts';
import { type Strings, withStrings } from '../strings.ts';
import { Modals } from './modals.ts';
import { VARIABLES } from './theme.ts';
import { ToastLayer } from './toast-layer.ts';

/** Shows the toasts of a page. Put it into the page once. */
export class ToasterElement extends LitElement {
  static override styles = css`:host { display: contents; }`;
  static override properties = {
    bellwire: { attribute: false },
    strings: { attribute: false },
    hotkey: {},
    theme: {},
  };

  declare bellwire: Bellwire | null;
  declare strings: Partial<Strings> | null;
  declare hotkey: string;
  declare theme: string | null;

  readonly #layer = document.createElement('bellwire-toast-layer') as ToastLayer;
  #modals: Modals | null = null;
  #subscriptions: (() => void)[] = [];
  #watched: Bellwire | null = null;

  constructor() {
    super();
    this.bellwire = null;
    this.strings = null;
    this.hotkey = 'F8';
    this.theme = null;
    this.#layer.removed = () => { queueMicrotask(() => { this.#place(); }); };
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#modals = new Modals(() => { this.#place(); });
    this.#subscriptions.push(page.subscribe(() => { this.requestUpdate(); }));
    this.#place();
    this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#modals?.disconnect();
    this.#modals = null;
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    this.#subscriptions = [];
    this.#watched = null;
    this.#layer.remove();
  }

  protected override updated(): void {
    const bellwire = this.bellwire ?? page.peek();
    this.#layer.bellwire = bellwire;
    this.#layer.strings = withStrings(this.strings);
    this.#layer.hotkey = this.hotkey;
    this.#layer.toggleAttribute('theme', this.theme !== null);
    if (this.theme !== null) this.#layer.setAttribute('theme', this.theme);
    if (bellwire === this.#watched || !this.isConnected) return;
    this.#watched = bellwire;
    if (bellwire) this.#subscriptions.push(bellwire.toasts.subscribe(() => { this.#place(); }));
    this.#place();
  }

  /** Keeps the toasts in the modal dialog that is open, else in this element. */
  #place(): void {
    if (!this.isConnected) return;
    const layer = this.#layer;
    const used = (this.#watched?.toasts.get().toasts.length ?? 0) > 0;
    const target = (used ? this.#modals?.top : null) ?? this.renderRoot;
    if (layer.parentNode === target) return;
    const style = getComputedStyle(this);
    for (const name of VARIABLES) {
      const value = target === this.renderRoot ? '' : style.getPropertyValue(name);
      layer.style.setProperty(name, value);
    }
    target.append(layer);
  }
}
