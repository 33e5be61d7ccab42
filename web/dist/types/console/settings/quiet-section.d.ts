import { type TemplateResult } from 'lit';
import { type SettingsView } from './section.ts';
/** The hours in which nothing is sent out of the hub. */
export declare function quietSection(view: SettingsView): TemplateResult;
