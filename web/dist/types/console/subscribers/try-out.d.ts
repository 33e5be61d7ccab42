import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { DryRunResult, Subscriber } from '../wire.ts';
/** Sample events at the left, the rendered text and its tokens at the right. Nothing is stored. */
export declare class TryOut extends PageElement {
    #private;
    static properties: {
        subscriber: {
            attribute: boolean;
        };
        result: {
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
    subscriber: Subscriber;
    result: DryRunResult | null;
    problem: string | null;
    constructor();
    protected willUpdate(changed: Map<string, unknown>): void;
    protected render(): TemplateResult;
}
