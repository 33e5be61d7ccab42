import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import { type State } from './words.ts';
/** What is sent out of the hub: dead letters first. */
export declare class DeliveriesPage extends PageElement {
    #private;
    static properties: {
        state: {
            state: boolean;
        };
        asked: {
            state: boolean;
        };
        ledger: {
            state: boolean;
        };
        answers: {
            state: boolean;
        };
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    state: State | null;
    /** The question that is open, and for which delivery. */
    asked: {
        readonly id: string;
        readonly action: 'retry' | 'cancel';
    } | null;
    /** What became of a retry or a cancellation, by delivery. */
    answers: ReadonlyMap<string, string>;
    /** Whether the ledger is shown instead. */
    ledger: boolean;
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
}
