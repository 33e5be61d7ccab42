import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { Trace } from '../wire.ts';
/** Why anyone was, or was not, told about one event. */
export declare class TracePanel extends PageElement {
    #private;
    static properties: {
        event: {};
        version: {
            attribute: boolean;
        };
        trace: {
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
    /** The id of the event. */
    event: string;
    /** Changes when the event has a new fate. */
    version: unknown;
    trace: Trace | null;
    problem: string | null;
    constructor();
    protected willUpdate(changed: Map<string, unknown>): void;
    protected render(): TemplateResult;
}
