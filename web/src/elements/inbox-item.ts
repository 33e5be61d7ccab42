import { type TemplateResult, html, nothing } from 'lit';
import type { Notification } from '../notification.ts';
import { type ItemView, buttons, lastLine } from './buttons.ts';
import { icon } from './icons.ts';
import { clockTime, when } from './when.ts';

export interface InboxItemView extends ItemView {
  readonly now: number;
  readonly language: string | undefined;
}

/** One notification in the list, with the same buttons as its toast. */
export function inboxItem(view: InboxItemView): TemplateResult {
  const { item, strings, now, language } = view;
  const unread = item.read_at === null;
  const details = [when(item.created_at, now, language), ...item.deliveries.map(({ channel, state, at, reason }) =>
    strings.delivery(channel, state, clockTime(at, now, language), reason))];
  return html`<div class="item ${unread ? 'unread' : 'read'}" data-id=${item.id} data-type=${item.type}>
    ${unread ? html`<span class="dot"><span class="hidden">${strings.unreadMark}</span></span>` : html`<span></span>`}
    <span class="mark">${icon(item.type, 17)}</span>
    <div>
      <span class="hidden">${strings.severity[item.type]}</span>
      ${item.title === null ? nothing : html`<p class="title text" dir="auto">${item.title}</p>`}
      <p class="message text ${item.title === null ? 'alone' : ''}" dir="auto">${item.message}</p>
      ${buttons(view)}
      ${lastLine(view, details)}
    </div>
    <div class="tools">${item.dismissed_at === null ? tools(view, item, unread) : nothing}</div>
  </div>`;
}

function tools({ bellwire, strings }: InboxItemView, { id }: Notification, unread: boolean): TemplateResult {
  const label = unread ? strings.markRead : strings.markUnread;
  return html`<button class="icon toggle" aria-label=${label} title=${label} @click=${() => bellwire.read(id, unread)}>${
      icon(unread ? 'read' : 'unread')}</button>
    <button class="icon dismiss" aria-label=${strings.dismiss} title=${strings.dismiss} @click=${() => bellwire.dismiss(id)}>${
      icon('close')}</button>`;
}
