import { type TemplateResult, html, nothing } from 'lit';
import type { Settings, SettingsChange } from '../wire.ts';
import type { Workspace } from '../workspace.ts';

/** How a change of one section went. */
export interface Note {
  readonly text: string;
  readonly isProblem: boolean;
  readonly undo: (() => void) | null;
}

export interface SettingsView {
  readonly settings: Settings;
  readonly workspace: Workspace;
  readonly notes: ReadonlyMap<string, Note>;
  /** Saves a change; `undo` is the change that takes it back. Returns whether it was saved. */
  readonly change: (name: string, change: SettingsChange, undo: SettingsChange | null) => Promise<boolean>;
  /** Takes over settings that another call returned. */
  readonly replace: (settings: Settings) => void;
  readonly note: (name: string, text: string, isProblem?: boolean) => void;
}

export function section(title: string, about: string, body: TemplateResult): TemplateResult {
  return html`<section class="card pad part" aria-label=${title}><div><h2>${title}</h2><p class="muted">${about}</p></div><div class="body">${body}</div></section>`;
}

/** Whether the last change of a section was saved, beside it. */
export function saved({ notes }: SettingsView, name: string): TemplateResult {
  const note = notes.get(name);
  return html`<p class="note" role="status">${note === undefined ? nothing : html`<span class=${note.isProblem ? 'problem' : 'saved'}>${note.text}</span>
    ${note.undo === null ? nothing : html`<button class="link" @click=${note.undo}>Undo</button>`}`}</p>`;
}

export function toggle({ workspace }: SettingsView, label: string, on: boolean, press: () => unknown): TemplateResult {
  return html`<button class="switch" role="switch" aria-label=${label} aria-checked=${on ? 'true' : 'false'}
    aria-disabled=${workspace.isReadOnly ? 'true' : 'false'} @click=${() => { if (!workspace.isReadOnly) press(); }}><span class="knob"></span></button>`;
}
