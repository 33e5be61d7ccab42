import { LitElement } from 'lit';
import type { Bellwire } from '../bellwire.ts';
import { type Strings } from '../strings.ts';
/** Shows the toasts of a page. Put it into the page once. */
export declare class ToasterElement extends LitElement {
    #private;
    static styles: import("lit").CSSResult;
    static properties: {
        bellwire: {
            attribute: boolean;
        };
        strings: {
            attribute: boolean;
        };
        hotkey: {};
        theme: {};
    };
    bellwire: Bellwire | null;
    strings: Partial<Strings> | null;
    hotkey: string;
    theme: string | null;
    constructor();
    connectedCallback(): void;
    disconnectedCallback(): void;
    protected updated(): void;
}
