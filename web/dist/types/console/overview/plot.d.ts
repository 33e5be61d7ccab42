import { LitElement, type TemplateResult } from 'lit';
import type { Plot } from './series.ts';
/** One plot with axes, a legend and the values under the pointer, and the same numbers as a table. */
export declare class PlotElement extends LitElement {
    #private;
    static properties: {
        plot: {
            attribute: boolean;
        };
        times: {
            attribute: boolean;
        };
        minutes: {
            attribute: boolean;
        };
        themed: {
            attribute: boolean;
        };
    };
    plot: Plot;
    times: readonly number[];
    /** How many minutes the axis has. */
    minutes: number;
    /** Changes with the theme, so that the plot is drawn in its colours. */
    themed: unknown;
    protected createRenderRoot(): this;
    disconnectedCallback(): void;
    protected render(): TemplateResult;
    protected updated(changed: Map<string, unknown>): void;
}
