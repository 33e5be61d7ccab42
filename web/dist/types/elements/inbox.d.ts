import { LitElement, type TemplateResult } from 'lit';
import type { Bellwire } from '../bellwire.ts';
import { type Strings } from '../strings.ts';
/** A bell with the number of unread notifications. It opens the inbox. */
export declare class InboxElement extends LitElement {
    #private;
    static styles: import("lit").CSSResult[];
    static properties: {
        bellwire: {
            attribute: boolean;
        };
        strings: {
            attribute: boolean;
        };
        theme: {
            reflect: boolean;
        };
        open: {
            state: boolean;
        };
    };
    bellwire: Bellwire | null;
    strings: Partial<Strings> | null;
    theme: string | null;
    open: boolean;
    constructor();
    connectedCallback(): void;
    disconnectedCallback(): void;
    protected willUpdate(): void;
    protected render(): TemplateResult;
}
