import { type TemplateResult } from 'lit';
/** Says texts to screen readers. The two live regions are in the page from the beginning. */
export declare class Announcer {
    #private;
    constructor(changed: () => void);
    say(text: string, assertive: boolean): void;
    stop(): void;
    render(): TemplateResult;
}
