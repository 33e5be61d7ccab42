import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { Settings } from '../wire.ts';
import { type SettingsView } from './section.ts';
/** What reaches the person, where and when. Every change is saved at once and can be undone. */
export declare class SettingsPage extends PageElement {
    #private;
    static properties: {
        settings: {
            state: boolean;
        };
        problem: {
            state: boolean;
        };
        notes: {
            state: boolean;
        };
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    settings: Settings | null;
    problem: string | null;
    notes: SettingsView['notes'];
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
}
