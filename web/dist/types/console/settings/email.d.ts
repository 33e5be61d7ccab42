import { type TemplateResult } from 'lit';
import { type SettingsView } from './section.ts';
/** The address, whether it is confirmed, and a test mail. */
export declare function emailSection(view: SettingsView): TemplateResult;
