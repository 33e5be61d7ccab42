import { type TemplateResult } from 'lit';
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
export declare function section(title: string, about: string, body: TemplateResult): TemplateResult;
/** Whether the last change of a section was saved, beside it. */
export declare function saved({ notes }: SettingsView, name: string): TemplateResult;
export declare function toggle({ workspace }: SettingsView, label: string, on: boolean, press: () => unknown): TemplateResult;
