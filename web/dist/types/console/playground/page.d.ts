import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
import { type Values } from './form.ts';
import { type Address, type Subject } from './request.ts';
/** Each tool and event as a form, the JSON it makes, the answer, and a command that does the same. */
export declare class PlaygroundPage extends PageElement {
    #private;
    static properties: {
        subjects: {
            state: boolean;
        };
        values: {
            state: boolean;
        };
        address: {
            state: boolean;
        };
        answer: {
            state: boolean;
        };
        problem: {
            state: boolean;
        };
        copied: {
            state: boolean;
        };
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    subjects: readonly Subject[];
    values: Values;
    address: Address;
    answer: unknown;
    problem: string | null;
    copied: boolean;
    constructor();
    connectedCallback(): void;
    protected willUpdate(): void;
    protected render(): TemplateResult;
}
