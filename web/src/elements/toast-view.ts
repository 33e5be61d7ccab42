import { type TemplateResult, html, nothing } from 'lit';
import { isPersistent } from '../notification.ts';
import type { Toast } from '../store/toasts.ts';
import { type ItemView, buttons, lastLine } from './buttons.ts';
import { icon } from './icons.ts';

export interface ToastView extends ItemView {
  readonly toast: Toast;
  /** Whether the text is longer than the toast shows. */
  readonly long: boolean;
  /** Whether the person asked for the whole text. */
  readonly open: boolean;
  readonly toggle: () => void;
  readonly keydown: (event: KeyboardEvent) => void;
  readonly pointerdown: (event: PointerEvent) => void;
}

/** One toast. */
export function toastView(view: ToastView): TemplateResult {
  const { item, strings, toast, bellwire } = view;
  return html`<div class="toast" role="group" tabindex="0" aria-labelledby=${`word-${item.id} text-${item.id}`}
    data-id=${item.id} data-type=${item.type} data-phase=${toast.phase}
    @keydown=${view.keydown} @pointerdown=${view.pointerdown}>
    <span class="mark">${icon(item.type, 18)}</span>
    <div class="body">
      <span class="hidden" id=${`word-${item.id}`}>${strings.severity[item.type]}</span>
      <div id=${`text-${item.id}`}>${text(view)}</div>
      ${view.long || view.open ? html`<button class="link" aria-expanded=${view.open ? 'true' : 'false'} @click=${view.toggle}>${
        view.open ? strings.less : strings.more}</button>` : nothing}
      ${buttons(view)}
      ${lastLine(view)}
    </div>
    <button class="icon close" aria-label=${strings.dismiss} @click=${() => bellwire.dismiss(item.id)}>${icon('close')}</button>
    ${isPersistent(item) || toast.phase !== 'open' ? nothing : html`<div class="bar" aria-hidden="true"></div>`}
  </div>`;
}

/** Without a title the message takes its weight. */
function text({ item, open }: ToastView): TemplateResult {
  const title = item.title === null ? nothing : html`<p class="title text" dir="auto">${item.title}</p>`;
  const kind = `message text ${open ? 'open' : 'clamped'} ${item.title === null ? 'alone' : ''}`;
  return html`${title}<p class=${kind} dir="auto" tabindex=${open ? '0' : nothing}>${item.message}</p>`;
}

/** What a screen reader says when the toast appears. */
export function announcement({ item, strings }: Pick<ItemView, 'item' | 'strings'>, hotkey: string): string {
  const title = item.title === null ? '' : `${item.title}. `;
  const actions = item.actions.length === 0 ? '' : ` ${strings.announceActions(item.actions.length, hotkey)}`;
  return `${strings.severity[item.type]}: ${title}${item.message}${actions}`;
}
