import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { Statistics } from '../wire.ts';
/** How much happens, how fast, and what waits. */
export declare class OverviewPage extends PageElement {
    #private;
    static properties: {
        minutes: {
            state: boolean;
        };
        statistics: {
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
    minutes: number;
    statistics: Statistics | null;
    problem: string | null;
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
}
