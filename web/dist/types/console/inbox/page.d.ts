import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
/** The person's notifications. */
export declare class InboxPage extends PageElement {
    #private;
    static properties: {
        current: {
            state: boolean;
        };
        openId: {
            state: boolean;
        };
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    /** The row that the keys act on. */
    current: string | null;
    openId: string | null;
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
    /** A search goes on through older pages until it has something to show. */
    protected updated(): void;
}
