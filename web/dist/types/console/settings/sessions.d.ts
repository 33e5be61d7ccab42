import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { SessionView } from '../wire.ts';
/** Where the person is signed in. */
export declare class SessionsElement extends PageElement {
    #private;
    static properties: {
        items: {
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
    items: readonly SessionView[] | null;
    problem: string | null;
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
}
