import { type TemplateResult } from 'lit';
import type { Api } from '../api.ts';
/** What the person told the agent, and when the agent read it. */
export interface Said {
    /** The id of the event. */
    readonly event: string;
    readonly text: string;
    readonly at: string;
    readonly read: {
        readonly at: string;
        readonly point: string;
    } | null;
}
export declare function tell(api: Api, path: string, text: string): Promise<Said>;
export declare function saidView({ text, at, read }: Said): TemplateResult;
