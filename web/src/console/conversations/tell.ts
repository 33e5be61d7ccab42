import { type TemplateResult, html } from 'lit';
import { HubError } from '../../client/http.ts';
import { isRecord } from '../../notification.ts';
import type { Api } from '../api.ts';
import { shortTime } from '../format.ts';

/** What the person told the agent, and when the agent read it. */
export interface Said {
  /** The id of the event. */
  readonly event: string;
  readonly text: string;
  readonly at: string;
  readonly read: { readonly at: string; readonly point: string } | null;
}

export async function tell(api: Api, path: string, text: string): Promise<Said> {
  const body = await api.json('POST', path, { text });
  if (!isRecord(body) || typeof body.event_id !== 'string') throw new HubError(0, 'the answer has no event');
  return { event: body.event_id, text, at: new Date().toISOString(), read: null };
}

export function saidView({ text, at, read }: Said): TemplateResult {
  const state = read === null ? html`<span class="v waits"><span>sent ${shortTime(at)}, not read yet</span></span>`
    : html`<span class="v good"><span>read ${shortTime(read.at)} at ${read.point}</span></span>`;
  return html`<li><span class="text" dir="auto">${text}</span> ${state}</li>`;
}
