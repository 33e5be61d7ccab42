import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import { type LiveFilter } from './store.ts';
/** Every event as it arrives, and what became of it. */
export declare class LivePage extends PageElement {
    #private;
    static properties: {
        filter: {
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
    filter: LiveFilter;
    problem: string | null;
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
}
