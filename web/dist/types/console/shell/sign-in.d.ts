import { LitElement, type TemplateResult } from 'lit';
import type { Sessions } from '../session.ts';
/** Shown without a session: how to get a link, and a field for a token. */
export declare class SignInElement extends LitElement {
    #private;
    static properties: {
        sessions: {
            attribute: boolean;
        };
        reason: {};
        problem: {
            state: boolean;
        };
        busy: {
            state: boolean;
        };
    };
    sessions: Sessions;
    reason: string | null;
    problem: string | null;
    busy: boolean;
    constructor();
    protected createRenderRoot(): this;
    protected render(): TemplateResult;
}
