// Draws the toasts of a page in the top layer. It is moved into modal dialogs, so it is an element of its own.
import { LitElement, type PropertyValues, type TemplateResult, html, nothing } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { Bellwire } from '../bellwire.ts';
import { POSITIONS, type Position } from '../notification.ts';
import type { Request } from '../store/requests.ts';
import { type Deck, EMPTY_DECK, type Toast, find, newest, stack } from '../store/toasts.ts';
import { type Strings, english } from '../strings.ts';
import { Announcer } from './announcer.ts';
import { focusedElement, isHotkey } from './focus.ts';
import { enter, exit, shrink } from './motion.ts';
import { followSwipe } from './swipe.ts';
import { theme } from './theme.ts';
import { toastStyles } from './toast-styles.ts';
import { announcement, toastView } from './toast-view.ts';

export class ToastLayer extends LitElement {
  static override styles = [theme, toastStyles];
  static override properties = {
    bellwire: { attribute: false },
    strings: { attribute: false },
    hotkey: { attribute: false },
    deck: { state: true },
  };

  declare bellwire: Bellwire | null;
  declare strings: Strings;
  declare hotkey: string;
  declare deck: Deck;

  /** Called when it was taken out of the page, such as with the dialog it was in. */
  removed: (() => void) | null = null;

  readonly #announcer = new Announcer(() => { this.requestUpdate(); });
  readonly #announced = new Set<string>();
  /** The requests whose outcome was said. */
  readonly #saidRequests = new WeakSet<Request>();
  /** The toasts that were drawn, and those that are fading. */
  readonly #entered = new Set<string>();
  readonly #leaving = new Set<string>();
  readonly #long = new Set<string>();
  readonly #open = new Set<string>();
  #focusBefore: HTMLElement | null = null;
  #focusedToast: string | null = null;
  #subscriptions: (() => void)[] = [];
  #listeners = new AbortController();

  constructor() {
    super();
    this.bellwire = null;
    this.strings = english;
    this.hotkey = 'F8';
    this.deck = EMPTY_DECK;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#listeners = new AbortController();
    const { signal } = this.#listeners;
    document.addEventListener('keydown', (event) => { this.#keydown(event); }, { signal });
    document.addEventListener('pointerdown', (event) => { this.#pressedElsewhere(event); }, { signal });
    document.addEventListener('fullscreenchange', () => { this.raise(); }, { signal });
    window.addEventListener('resize', () => { this.#measure(); }, { signal });
    if (this.hasUpdated) this.raise();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#listeners.abort();
    this.removed?.();
  }

  /** Puts the toasts above everything that was put into the top layer before. */
  raise(): void {
    const layer = this.#layer();
    if (!layer || !this.isConnected) return;
    if (layer.matches(':popover-open')) layer.hidePopover();
    if (this.deck.toasts.length > 0) layer.showPopover();
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has('bellwire')) this.#subscribe();
    this.#focusedToast = this.shadowRoot?.activeElement?.closest<HTMLElement>('.toast')?.dataset.id ?? null;
    for (const { item, phase } of this.deck.toasts) {
      if (this.#announced.has(item.id) || phase === 'leaving') continue;
      this.#announced.add(item.id);
      this.#announcer.say(announcement({ item, strings: this.strings }, this.hotkey), item.type === 'error');
    }
  }

  protected override render(): TemplateResult {
    return html`${this.#announcer.render()}
      <div class="layer" popover="manual" role="region" aria-label=${this.strings.notifications}>
        ${POSITIONS.map((position) => this.#stack(position))}
      </div>`;
  }

  protected override updated(): void {
    const layer = this.#layer();
    const isOpen = layer?.matches(':popover-open') ?? false;
    if (layer && this.isConnected && isOpen !== this.deck.toasts.length > 0) layer.togglePopover(!isOpen);
    this.#measure();
    for (const toast of this.deck.toasts) this.#animate(toast);
    this.#forgetGone();
    this.#keepFocus();
  }

  #subscribe(): void {
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    const { bellwire } = this;
    this.deck = bellwire?.toasts.get() ?? EMPTY_DECK;
    this.#subscriptions = bellwire === null ? [] : [
      bellwire.toasts.subscribe(() => { this.deck = bellwire.toasts.get(); }),
      bellwire.requests.subscribe(() => {
        this.#announceRequests(bellwire);
        this.requestUpdate();
      }),
      bellwire.handler.subscribe(() => { this.requestUpdate(); }),
    ];
  }

  /** Says how a pressed button went, because the text in the toast is new and no live region. */
  #announceRequests(bellwire: Bellwire): void {
    for (const [id, request] of bellwire.requests.get()) {
      const said = request.state === 'sending' || this.#saidRequests.has(request) || !find(this.deck, id);
      if (said) continue;
      this.#saidRequests.add(request);
      if (request.problem) this.#announcer.say(this.strings.problem(request.problem), true);
      else if (request.action === 'press') this.#announcer.say(this.strings.sent, false);
    }
  }

  #stack(position: Position): TemplateResult | typeof nothing {
    const { shown, behind, expanded } = stack(this.deck, position);
    if (shown.length === 0) return nothing;
    const hold = (held: boolean) => (event: PointerEvent): void => {
      if (event.pointerType === 'mouse') this.bellwire?.hold(position, held || this.#hasFocus(position));
    };
    return html`<ol class="stack" data-position=${position} ?data-expanded=${expanded}
      @pointerenter=${hold(true)} @pointerleave=${hold(false)}
      @focusin=${(event: FocusEvent) => { this.#focusIn(event, position); }}
      @focusout=${(event: FocusEvent) => { this.#focusOut(event, position); }}>
      ${repeat(shown, ({ item }) => item.id, (toast) => html`<li>${this.#toast(toast)}</li>`)}
      ${behind === 0 ? nothing : html`<li class="behind"><button aria-label=${this.strings.behindLabel(behind)}
        @click=${() => this.bellwire?.hold(position, true)}>${this.strings.behind(behind)}</button></li>`}
    </ol>`;
  }

  #toast(toast: Toast): TemplateResult | typeof nothing {
    const { bellwire, strings } = this;
    const { item } = toast;
    if (bellwire === null) return nothing;
    const dismiss = (): void => { void bellwire.dismiss(item.id); };
    return toastView({
      toast, item, bellwire, strings,
      request: bellwire.requests.get().get(item.id) ?? null,
      long: this.#long.has(item.id),
      open: this.#open.has(item.id),
      toggle: () => {
        if (!this.#open.delete(item.id)) this.#open.add(item.id);
        this.requestUpdate();
      },
      keydown: (event) => {
        if (event.key !== 'Escape') return;
        // The dialog or the menu that the toast is above of stays open.
        event.preventDefault();
        event.stopPropagation();
        dismiss();
      },
      pointerdown: (event) => {
        const held = (value: boolean): void => { bellwire.hold(item.position, value); };
        followSwipe(event, event.currentTarget as HTMLElement, item.position, held, dismiss);
      },
    });
  }

  #animate(toast: Toast): void {
    const { id, position } = toast.item;
    const element = this.#element(id);
    if (!element) return;
    if (!this.#entered.has(id)) enter(element, position === 'bottom-right');
    this.#entered.add(id);
    if (toast.phase === 'leaving' && !this.#leaving.has(id)) exit(element);
    if (toast.phase === 'leaving') this.#leaving.add(id);
    else if (this.#leaving.delete(id)) for (const animation of element.getAnimations()) animation.cancel();
    const bar = element.querySelector<HTMLElement>('.bar');
    if (bar) shrink(bar, toast, performance.now());
  }

  #forgetGone(): void {
    for (const ids of [this.#announced, this.#entered, this.#leaving, this.#long, this.#open]) {
      for (const id of ids) if (!find(this.deck, id)) ids.delete(id);
    }
  }

  /** Finds the texts that are longer than their toast shows. */
  #measure(): void {
    for (const message of this.renderRoot.querySelectorAll<HTMLElement>('.message.clamped')) {
      const id = message.closest<HTMLElement>('.toast')?.dataset.id ?? '';
      const long = message.scrollHeight > message.clientHeight + 1;
      if (long === this.#long.has(id)) continue;
      if (long) this.#long.add(id);
      else this.#long.delete(id);
      this.requestUpdate();
    }
  }

  #keydown(event: KeyboardEvent): void {
    if (!isHotkey(event, this.hotkey)) return;
    const toast = newest(this.deck);
    if (!toast) return;
    event.preventDefault();
    if (this.shadowRoot?.activeElement) this.#returnFocus();
    else void this.#focusToast(toast);
  }

  async #focusToast({ item }: Toast): Promise<void> {
    this.#focusBefore = focusedElement();
    // It may be behind the others.
    this.bellwire?.hold(item.position, true);
    await this.updateComplete;
    this.#element(item.id)?.focus();
  }

  #focusIn({ relatedTarget }: FocusEvent, position: Position): void {
    if (relatedTarget instanceof HTMLElement && relatedTarget !== this) this.#focusBefore ??= relatedTarget;
    this.bellwire?.hold(position, true);
  }

  #focusOut({ relatedTarget }: FocusEvent, position: Position): void {
    const stays = relatedTarget instanceof Element && this.#stackElement(position)?.contains(relatedTarget);
    if (stays) return;
    this.bellwire?.hold(position, this.#stackElement(position)?.matches(':hover') ?? false);
    if (relatedTarget !== null) this.#focusBefore = null;
  }

  /** The focus stays in its toast when the button that had it is gone, and returns when the toast is. */
  #keepFocus(): void {
    if (this.#focusedToast === null) return;
    const there = (find(this.deck, this.#focusedToast)?.phase ?? 'leaving') !== 'leaving';
    if (!there) this.#returnFocus();
    else if (!this.shadowRoot?.activeElement) this.#element(this.#focusedToast)?.focus();
  }

  #returnFocus(): void {
    const before = this.#focusBefore;
    this.#focusBefore = null;
    if (before?.isConnected) before.focus();
    else (this.shadowRoot?.activeElement as HTMLElement | null)?.blur();
  }

  /** A finger has no hover: a touch elsewhere collapses what «+N» expanded. */
  #pressedElsewhere(event: PointerEvent): void {
    if (event.pointerType === 'mouse' || event.composedPath().includes(this)) return;
    for (const position of this.deck.held) if (!this.#hasFocus(position)) this.bellwire?.hold(position, false);
  }

  #hasFocus(position: Position): boolean {
    return this.#stackElement(position)?.contains(this.shadowRoot?.activeElement ?? null) ?? false;
  }

  #layer(): HTMLElement | null {
    return this.renderRoot.querySelector<HTMLElement>('.layer');
  }

  #stackElement(position: Position): HTMLElement | null {
    return this.renderRoot.querySelector<HTMLElement>(`.stack[data-position='${position}']`);
  }

  #element(id: string): HTMLElement | null {
    return this.renderRoot.querySelector<HTMLElement>(`.toast[data-id='${CSS.escape(id)}']`);
  }
}
