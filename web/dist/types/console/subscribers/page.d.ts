import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { Subscriber } from '../wire.ts';
/** Who listens for what, how often in the last day, and whether it is switched on. */
export declare class SubscribersPage extends PageElement {
    #private;
    static properties: {
        items: {
            state: boolean;
        };
        problem: {
            state: boolean;
        };
        notes: {
            state: boolean;
        };
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    items: readonly Subscriber[] | null;
    problem: string | null;
    /** What became of a switch, by subscriber. */
    notes: ReadonlyMap<string, string>;
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
}
