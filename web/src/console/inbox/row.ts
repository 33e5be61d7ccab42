import { type TemplateResult, html, nothing } from 'lit';
import { type ItemView, buttons, lastLine } from '../../elements/buttons.ts';
import { icon } from '../../elements/icons.ts';
import { clockTime, when } from '../../elements/when.ts';
import { pathOf, to } from '../routes.ts';
import { deliveryText } from './deliveries-line.ts';

export interface InboxRowView extends ItemView {
  readonly now: number;
  readonly isReadOnly: boolean;
  /** The row that the keys act on. */
  readonly isCurrent: boolean;
  /** Whether the person went to it. The first row is the current one before that. */
  readonly isChosen: boolean;
  readonly isOpen: boolean;
  readonly choose: () => void;
  readonly open: () => void;
  readonly toggleRead: () => void;
  readonly dismiss: () => void;
  readonly restore: () => void;
}

/** One notification of the inbox. */
export function inboxRow(view: InboxRowView, index: number, count: number): TemplateResult {
  const { item, strings, now, isCurrent, isChosen, isOpen } = view;
  const unread = item.read_at === null;
  const outside = item.deliveries.map((delivery) => deliveryText(delivery, clockTime(delivery.at, now, 'en-GB')));
  const kind = `item ${unread ? 'unread' : 'read'} ${isOpen ? 'open' : ''} ${isCurrent ? 'current' : ''} ${isChosen ? 'chosen' : ''}`;
  return html`<div role="listitem" class=${kind} data-key=${item.id} data-id=${item.id} data-type=${item.type}
    aria-posinset=${index + 1} aria-setsize=${count} tabindex=${isCurrent ? '0' : '-1'}
    @focusin=${view.choose} @click=${(event: MouseEvent) => { clicked(event, view); }}>
    ${unread ? html`<span class="dot"><span class="hidden">${strings.unreadMark}</span></span>` : html`<span></span>`}
    <span class="mark">${icon(item.type, 17)}</span>
    <div class="body">
      <span class="hidden">${strings.severity[item.type]}</span>
      ${item.title === null ? nothing : html`<p class="title text" dir="auto">${item.title}</p>`}
      <p class="message text ${item.title === null ? 'alone' : ''} ${isOpen ? '' : 'clamped'}" dir="auto">${item.message}</p>
      ${view.isReadOnly ? nothing : buttons(view)}
      ${lastLine(view, [when(item.created_at, now, 'en'), ...outside])}
      ${isOpen ? details(view) : nothing}
    </div>
    <div class="tools">${view.isReadOnly ? nothing : tools(view, unread)}</div>
  </div>`;
}

function details({ item }: InboxRowView): TemplateResult {
  const conversation = item.conversation_id;
  return html`<p class="meta">${new Date(item.created_at).toLocaleString('en-GB')}${conversation === null ? nothing
    : html` · <a href=${pathOf(to('conversations', conversation))}>Open the conversation</a>`}</p>`;
}

function tools(view: InboxRowView, unread: boolean): TemplateResult {
  const { strings, item } = view;
  if (item.dismissed_at !== null) return html`<button class="restore" tabindex="-1" @click=${view.restore}>Restore</button>`;
  const label = unread ? strings.markRead : strings.markUnread;
  return html`<button class="icon toggle" aria-label=${label} title=${`${label} (r)`} @click=${view.toggleRead}>${
      icon(unread ? 'read' : 'unread')}</button>
    <button class="icon dismiss" aria-label=${strings.dismiss} title=${`${strings.dismiss} (e)`} @click=${view.dismiss}>${
      icon('close')}</button>`;
}

/** A click on the text opens the row; one on a control is for the control. */
function clicked(event: MouseEvent, view: InboxRowView): void {
  const onControl = event.composedPath().some((target) => target instanceof HTMLElement && target.matches('button, a'));
  const selecting = (getSelection()?.toString() ?? '') !== '';
  if (!onControl && !selecting) view.open();
}
