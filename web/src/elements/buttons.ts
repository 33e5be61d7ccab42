// The buttons of a notification, the same in a toast and in the inbox: what they send, and how the request went.
import { type TemplateResult, html, nothing } from 'lit';
import type { Bellwire } from '../bellwire.ts';
import { type Notification, pressedAction } from '../notification.ts';
import { canRetry } from '../problem.ts';
import type { Request } from '../store/requests.ts';
import type { Strings } from '../strings.ts';
import { icon } from './icons.ts';

export interface ItemView {
  readonly item: Notification;
  readonly bellwire: Bellwire;
  readonly strings: Strings;
  readonly request: Request | null;
}

/** The buttons, or what became of them. */
export function buttons(view: ItemView): TemplateResult | typeof nothing {
  const { item, strings, request } = view;
  const pressed = pressedAction(item);
  if (request?.state === 'failed' && request.problem) return failure(view, request);
  if (request?.action === 'press' && request.state === 'sent') return outcome(strings.sent);
  if (pressed?.action === 'prompt') return outcome(strings.answered(pressed.label));
  if (!offersButtons(view)) return nothing;
  return html`<div class="actions">${item.actions.map((_, index) => button(view, index))}</div>`;
}

/** The last line: where the notification comes from, and what its buttons send. */
export function lastLine(view: ItemView, details: readonly string[] = []): TemplateResult | typeof nothing {
  const { item, strings } = view;
  const words = [item.origin, item.source, item.conversation_id, ...details].filter((word) => word !== null && word !== '');
  const prompts = offersButtons(view) ? promptsOf(item) : [];
  const [only] = prompts;
  const alone = only && prompts.length === 1 ? [hint(view, only.index, strings.sends(only.prompt))] : [];
  const parts: TemplateResult[] = [...words.map((word) => html`<bdi>${word}</bdi>`), ...alone];
  const line = parts.length > 0 ? html`<p class="meta">${parts.map((part, at) => (at > 0 ? html` · ${part}` : part))}</p>` : nothing;
  if (prompts.length < 2) return line;
  const lines = prompts.map(({ label, prompt, index }) => html`<li>${hint(view, index, strings.sendsBy(label, prompt))}</li>`);
  return html`<ul class="hints">${lines}</ul>${line}`;
}

function offersButtons({ item, request }: ItemView): boolean {
  return item.actions.length > 0 && pressedAction(item) === null && item.dismissed_at === null && request?.state !== 'failed'
    && !(request?.action === 'press' && request.state === 'sent');
}

function promptsOf(item: Notification): { label: string; prompt: string; index: number }[] {
  return item.actions.flatMap(({ label, prompt }, index) => (prompt === null ? [] : [{ label, prompt, index }]));
}

function outcome(text: string): TemplateResult {
  return html`<div class="outcome">${icon('check', 14)}<span class="text" dir="auto">${text}</span></div>`;
}

function failure({ item, bellwire, strings }: ItemView, request: Request): TemplateResult {
  const problem = request.problem;
  if (!problem) return html``;
  const retry = html`<button class="retry" @click=${() => bellwire.retry(item.id)}>${strings.retry}</button>`;
  return html`<div class="outcome failed">
    <span class="text" dir="auto">${strings.problem(problem)}</span>${canRetry(problem) ? retry : nothing}
  </div>`;
}

function button({ item, bellwire, strings, request }: ItemView, index: number): TemplateResult {
  const action = item.actions[index];
  if (!action) return html``;
  const first = item.actions.findIndex((other) => other.action === 'prompt') === index;
  const blocked = bellwire.blocked(item, index) !== null;
  const sending = request?.action === 'press' && request.state === 'sending';
  const hint = action.action === 'prompt' ? hintId(item, index) : nothing;
  // Not `disabled`: a disabled button loses the focus, and its reason could not be read.
  return html`<button class=${first ? 'primary' : ''} dir="auto" aria-disabled=${blocked || sending ? 'true' : 'false'}
    aria-describedby=${hint} data-action=${action.action}
    @click=${() => bellwire.press(item.id, index)}>${sending && request.index === index ? strings.sending : action.label}</button>`;
}

/** What a button sends, before it is pressed; and why it cannot. */
function hint({ item, bellwire, strings }: ItemView, index: number, text: string): TemplateResult {
  const reason = bellwire.blocked(item, index) === null ? nothing : html` <span class="reason">${strings.noHandler}</span>`;
  return html`<span id=${hintId(item, index)}><bdi class="hint">${text}</bdi>${reason}</span>`;
}

function hintId(item: Notification, index: number): string {
  return `hint-${item.id}-${String(index)}`;
}
