import { type TemplateResult } from 'lit';
import { type SettingsView } from './section.ts';
/** The origins whose notifications go to the inbox only. */
export declare function mutedSection(view: SettingsView): TemplateResult;
