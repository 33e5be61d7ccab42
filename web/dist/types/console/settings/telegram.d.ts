import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { Pairing, Settings } from '../wire.ts';
import { type SettingsView } from './section.ts';
/** Connects a Telegram chat: a link, a QR code for the phone, and the code itself. */
export declare class TelegramElement extends PageElement {
    #private;
    static properties: {
        settings: {
            attribute: boolean;
        };
        view: {
            attribute: boolean;
        };
        pairing: {
            state: boolean;
        };
        problem: {
            state: boolean;
        };
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    settings: Settings;
    view: SettingsView;
    pairing: Pairing | null;
    problem: string | null;
    constructor();
    disconnectedCallback(): void;
    protected render(): TemplateResult;
}
