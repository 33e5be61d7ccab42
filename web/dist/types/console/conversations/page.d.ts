import { type TemplateResult } from 'lit';
import { PageElement } from '../page.ts';
/** The conversations of a person, and one of them. */
export declare class ConversationsPage extends PageElement {
    #private;
    connectedCallback(): void;
    protected render(): TemplateResult;
}
