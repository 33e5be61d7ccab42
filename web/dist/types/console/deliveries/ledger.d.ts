import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { LedgerSums } from '../wire.ts';
/** What became of the calls of `notify`: sums by origin, and the decisions of one. */
export declare class LedgerElement extends PageElement {
    #private;
    static properties: {
        sums: {
            state: boolean;
        };
        problem: {
            state: boolean;
        };
        origin: {
            state: boolean;
        };
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    sums: readonly LedgerSums[] | null;
    problem: string | null;
    origin: string | null;
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
}
