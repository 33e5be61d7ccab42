import { LitElement, type TemplateResult } from 'lit';
export interface RowList<Item> {
    readonly items: readonly Item[];
    readonly key: (item: Item) => string;
    readonly row: (item: Item, index: number) => TemplateResult;
}
/**
 * A long list of which only the visible rows are in the page. It scrolls itself. Each row is a child with `data-key`; its
 * height is measured, and estimated until then.
 */
export declare class RowsElement extends LitElement {
    #private;
    static properties: {
        list: {
            attribute: boolean;
        };
        estimate: {
            type: NumberConstructor;
        };
        label: {};
        rowRole: {
            attribute: boolean;
        };
    };
    list: RowList<unknown> | null;
    estimate: number;
    label: string;
    /** What the rows are to assistive technology. */
    rowRole: 'list' | 'rowgroup' | 'feed';
    constructor();
    protected createRenderRoot(): this;
    connectedCallback(): void;
    disconnectedCallback(): void;
    /** Scrolls as little as needed to show a row, and waits until it is drawn. */
    reveal(key: string): Promise<HTMLElement | null>;
    protected render(): TemplateResult;
    protected updated(): void;
}
