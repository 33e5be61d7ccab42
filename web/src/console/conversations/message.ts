import { type TemplateResult, html, nothing } from 'lit';
import { icon } from '../../elements/icons.ts';
import { exactTime, shortTime } from '../format.ts';
import type { Message } from '../wire.ts';
import { type Part, parseToon } from './toon.ts';

/** A system message that the agent read: TOON as a table, the raw text on demand. */
export function messageView(message: Message, isRaw: boolean, toggle: () => void): TemplateResult {
  const { id, source, timestamp, call_id: call, content } = message;
  const kind = source === 'user' ? 'block person' : 'block';
  return html`<article class=${kind} data-key=${id} aria-label=${`From ${source}`}>
    <header><b>${source === 'user' ? 'You' : html`<bdi>${source}</bdi>`}</b>
      <span class="muted small" title=${timestamp}>${shortTime(timestamp)} · <bdi>${call}</bdi></span>
      <button class="link small" aria-pressed=${isRaw ? 'true' : 'false'} @click=${toggle}>${isRaw ? 'table' : 'raw'}</button></header>
    ${isRaw ? html`<pre class="mono" dir="auto" tabindex="0">${content}</pre><p class="muted small">read at ${exactTime(timestamp)}</p>`
      : parseToon(content).map(partView)}
  </article>`;
}

function partView(part: Part): TemplateResult {
  switch (part.kind) {
    case 'text':
      return html`<p class="text" dir="auto">${part.text}</p>`;
    case 'value':
      return html`<p class="text" dir="auto">${label(part.name)} ${part.value}</p>`;
    case 'list':
      return html`<p>${label(part.name)}</p><ul>${part.values.map((value) => html`<li dir="auto">${value}</li>`)}</ul>`;
    case 'table':
      return html`<p>${label(part.name)}</p><div class="scroll-x" tabindex="0" role="region" aria-label=${words(part.name)}><table>
        <thead><tr>${part.columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
        <tbody>${part.rows.map((row) => html`<tr>${row.map((cell) => html`<td dir="auto">${cell}</td>`)}</tr>`)}</tbody></table></div>`;
  }
}

/** `tool_fail` and `!critical` as words. */
function words(name: string): string {
  return name.replace(/^!/, '').replaceAll('_', ' ');
}

/**
 * The name of what follows. A message has no severity of its own: where the name says that something failed or warns, it has the
 * icon and the colour of that.
 */
function label(name: string): TemplateResult {
  const look = lookOf(name);
  return html`<span class=${`label ${look ?? ''}`}>${look === null ? nothing : icon(look, 14)}${words(name)}</span>`;
}

function lookOf(name: string): 'error' | 'warning' | null {
  if (name.startsWith('!critical') || /fail|error|exceeded/.test(name)) return 'error';
  return name.startsWith('!') || name.includes('warn') ? 'warning' : null;
}

export function emptyTranscript(): TemplateResult | typeof nothing {
  return html`<p class="empty">The agent has read nothing from Bellwire here yet. What it reads at its next injection point shows here.</p>`;
}
