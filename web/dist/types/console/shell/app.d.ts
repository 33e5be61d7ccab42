import { LitElement, type TemplateResult } from 'lit';
import { type Route } from '../routes.ts';
import type { Sessions } from '../session.ts';
/** The console: signing in, the rail, and the page of the address. */
export declare class ConsoleElement extends LitElement {
    #private;
    static styles: import("lit").CSSResult[];
    static properties: {
        sessions: {
            attribute: boolean;
        };
        theme: {
            reflect: boolean;
        };
        route: {
            state: boolean;
        };
    };
    sessions: Sessions;
    theme: string | null;
    route: Route | null;
    constructor();
    connectedCallback(): void;
    disconnectedCallback(): void;
    protected render(): TemplateResult;
    protected updated(): void;
}
