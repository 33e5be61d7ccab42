import { LitElement } from 'lit';
import type { Readable } from '../store/observable.ts';
import type { Route } from './routes.ts';
import type { Workspace } from './workspace.ts';
/** The base of the pages. They are drawn into the console's own shadow root, so that all share its style sheets. */
export declare abstract class PageElement extends LitElement {
    #private;
    static properties: {
        workspace: {
            attribute: boolean;
        };
        route: {
            attribute: boolean;
        };
    };
    workspace: Workspace;
    route: Route;
    protected createRenderRoot(): this;
    disconnectedCallback(): void;
    /** Draws the page again after every change, until it is removed. */
    protected watch(...states: readonly Readable<unknown>[]): void;
    /** Called when the page is removed. */
    protected onLeave(end: () => void): void;
    protected go(route: Route): void;
}
/** Whether a key press is meant for a field and not for the page. */
export declare function isTyping(event: KeyboardEvent): boolean;
