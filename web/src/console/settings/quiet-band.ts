import { LitElement, type PropertyValues, type TemplateResult, html } from 'lit';
import { DAY, type QuietHours, minuteIn, minutesOf, pieces, timeOf } from './quiet-hours.ts';

export interface BandChange {
  readonly start: string;
  readonly end: string;
}

/** The steps of the pointer and the arrow keys, and of Page Up and Page Down, in minutes. */
const STEP = 15;
const LEAP = 60;

type Grip = 'start' | 'end' | 'both';

/** A day as a band: its quiet part can be dragged, and each end moved by the keyboard. Now is marked. */
export class QuietBand extends LitElement {
  static override properties = { quiet: { attribute: false }, isReadOnly: { attribute: false }, dragged: { state: true } };

  declare quiet: QuietHours;
  declare isReadOnly: boolean;
  /** The hours while they are dragged, and until they are saved: a key that is pressed meanwhile starts from them. */
  declare dragged: { readonly start: number; readonly end: number } | null;

  constructor() {
    super();
    [this.isReadOnly, this.dragged] = [false, null];
  }

  protected override createRenderRoot(): this {
    return this;
  }

  protected override render(): TemplateResult {
    return html`<div class="band" @pointerdown=${(event: PointerEvent) => { this.#grab(event); }}>
        <div class="piece" data-grip="both"></div><div class="piece" data-grip="both"></div>
        <div class="now" title="now"></div>${this.#handle('start', 'Quiet from')}${this.#handle('end', 'Quiet until')}</div>
      <div class="hours" aria-hidden="true">${[0, 6, 12, 18, 24].map((hour) => html`<span>${String(hour).padStart(2, '0')}:00</span>`)}</div>`;
  }

  protected override willUpdate(changed: PropertyValues): void {
    const { dragged, quiet } = this;
    if (changed.has('quiet') && dragged !== null && timeOf(dragged.start) === quiet.start && timeOf(dragged.end) === quiet.end) this.dragged = null;
  }

  protected override updated(): void {
    const { start, end } = this.#hours();
    const set = (element: Element | null, left: number, width: number | null): void => {
      if (!(element instanceof HTMLElement)) return;
      element.style.setProperty('left', `${String((left / DAY) * 100)}%`);
      if (width !== null) element.style.setProperty('width', `${String((width / DAY) * 100)}%`);
    };
    const parts = pieces(start, end);
    for (const [at, piece] of [...this.querySelectorAll('.piece')].entries()) {
      const [from, to] = parts[at] ?? [0, 0];
      set(piece, from, to - from);
    }
    set(this.querySelector('.now'), minuteIn(this.quiet.timezone, Date.now()), null);
    set(this.querySelector('[data-grip=start]'), start, null);
    set(this.querySelector('[data-grip=end]'), end, null);
  }

  #handle(grip: 'start' | 'end', label: string): TemplateResult {
    const minute = this.#hours()[grip];
    return html`<div class="handle" role="slider" tabindex="0" data-grip=${grip} aria-label=${label} aria-valuemin="0" aria-valuemax=${DAY - 1}
      aria-valuenow=${minute} aria-valuetext=${timeOf(minute)} aria-disabled=${this.isReadOnly ? 'true' : 'false'}
      @keydown=${(event: KeyboardEvent) => { this.#key(event, grip); }}><span class="time">${timeOf(minute)}</span></div>`;
  }

  #hours(): { start: number; end: number } {
    return this.dragged ?? { start: minutesOf(this.quiet.start), end: minutesOf(this.quiet.end) };
  }

  #key(event: KeyboardEvent, grip: 'start' | 'end'): void {
    const steps: Record<string, number> = {
      ArrowLeft: -STEP, ArrowDown: -STEP, ArrowRight: STEP, ArrowUp: STEP, PageDown: -LEAP, PageUp: LEAP,
    };
    const step = steps[event.key];
    if (step === undefined || this.isReadOnly) return;
    event.preventDefault();
    this.#save(moved(this.#hours(), grip, step));
  }

  #grab(event: PointerEvent): void {
    const grip = (event.target as HTMLElement).closest<HTMLElement>('[data-grip]')?.dataset.grip as Grip | undefined;
    const band = event.currentTarget as HTMLElement;
    if (grip === undefined || this.isReadOnly) return;
    const [begun, x, { width }] = [this.#hours(), event.clientX, band.getBoundingClientRect()];
    const end = new AbortController();
    band.setPointerCapture(event.pointerId);
    band.addEventListener('pointermove', (move) => {
      const by = Math.round((((move.clientX - x) / width) * DAY) / STEP) * STEP;
      this.dragged = moved(begun, grip, by);
    }, { signal: end.signal });
    const finish = (): void => {
      end.abort();
      if (this.dragged !== null) this.#save(this.dragged);
    };
    band.addEventListener('pointerup', finish, { signal: end.signal });
    band.addEventListener('pointercancel', finish, { signal: end.signal });
  }

  #save({ start, end }: { start: number; end: number }): void {
    const change: BandChange = { start: timeOf(start), end: timeOf(end) };
    if (change.start === change.end) {
      this.dragged = null;
      return;
    }
    this.dragged = { start, end };
    this.dispatchEvent(new CustomEvent<BandChange>('change', { detail: change }));
  }
}

function moved({ start, end }: { start: number; end: number }, grip: Grip, by: number): { start: number; end: number } {
  const around = (minute: number): number => (minute + by + DAY) % DAY;
  return { start: grip === 'end' ? start : around(start), end: grip === 'start' ? end : around(end) };
}
