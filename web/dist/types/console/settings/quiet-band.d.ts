import { LitElement, type TemplateResult } from 'lit';
import { type QuietHours } from './quiet-hours.ts';
export interface BandChange {
    readonly start: string;
    readonly end: string;
}
/** A day as a band: its quiet part can be dragged, and each end moved by the keyboard. Now is marked. */
export declare class QuietBand extends LitElement {
    #private;
    static properties: {
        quiet: {
            attribute: boolean;
        };
        isReadOnly: {
            attribute: boolean;
        };
        dragged: {
            state: boolean;
        };
    };
    quiet: QuietHours;
    isReadOnly: boolean;
    /** The hours while they are dragged. */
    dragged: {
        readonly start: number;
        readonly end: number;
    } | null;
    constructor();
    protected createRenderRoot(): this;
    protected render(): TemplateResult;
    protected updated(): void;
}
