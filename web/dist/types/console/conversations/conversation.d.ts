import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import type { Conversation } from '../wire.ts';
import { type Pending } from './pending.ts';
import { type Said } from './tell.ts';
/** One conversation: what its agent read, what waits, and a field to tell it something. */
export declare class ConversationPanel extends PageElement {
    #private;
    static properties: {
        conversation: {
            state: boolean;
        };
        problem: {
            state: boolean;
        };
        pending: {
            state: boolean;
        };
        said: {
            state: boolean;
        };
        sayProblem: {
            state: boolean;
        };
        raw: {
            state: boolean;
        };
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    conversation: Conversation | null;
    problem: string | null;
    pending: readonly Pending[];
    said: readonly Said[];
    sayProblem: string | null;
    /** The messages that are shown as the agent read them. */
    raw: ReadonlySet<string>;
    constructor();
    connectedCallback(): void;
    protected render(): TemplateResult;
}
