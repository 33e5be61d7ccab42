import { LitElement, type PropertyValues, type TemplateResult } from 'lit';
import type { Bellwire } from '../bellwire.ts';
import { type Deck } from '../store/toasts.ts';
import { type Strings } from '../strings.ts';
export declare class ToastLayer extends LitElement {
    #private;
    static styles: import("lit").CSSResult[];
    static properties: {
        bellwire: {
            attribute: boolean;
        };
        strings: {
            attribute: boolean;
        };
        hotkey: {
            attribute: boolean;
        };
        deck: {
            state: boolean;
        };
    };
    bellwire: Bellwire | null;
    strings: Strings;
    hotkey: string;
    deck: Deck;
    /** Called when it was taken out of the page, such as with the dialog it was in. */
    removed: (() => void) | null;
    constructor();
    connectedCallback(): void;
    disconnectedCallback(): void;
    /** Puts the toasts above everything that was put into the top layer before. */
    raise(): void;
    protected willUpdate(changed: PropertyValues<this>): void;
    protected render(): TemplateResult;
    protected updated(): void;
}
