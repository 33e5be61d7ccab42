import { LitElement, type TemplateResult } from 'lit';
import type { Workspace } from '../workspace.ts';
interface Person {
    readonly id: string;
}
/** «Viewing ada»: an operator chooses whose data is shown. */
export declare class PersonSwitchElement extends LitElement {
    #private;
    static properties: {
        workspace: {
            attribute: boolean;
        };
        place: {};
        people: {
            state: boolean;
        };
        problem: {
            state: boolean;
        };
    };
    workspace: Workspace;
    place: string;
    people: readonly Person[];
    problem: string | null;
    constructor();
    protected createRenderRoot(): this;
    protected render(): TemplateResult;
}
export {};
