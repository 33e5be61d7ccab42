import { type SVGTemplateResult } from 'lit';
declare const paths: {
    info: import("lit-html").TemplateResult<2>;
    success: import("lit-html").TemplateResult<2>;
    warning: import("lit-html").TemplateResult<2>;
    error: import("lit-html").TemplateResult<2>;
    reminder: import("lit-html").TemplateResult<2>;
    bell: import("lit-html").TemplateResult<2>;
    close: import("lit-html").TemplateResult<2>;
    check: import("lit-html").TemplateResult<2>;
    read: import("lit-html").TemplateResult<2>;
    unread: import("lit-html").TemplateResult<2>;
};
/** An icon in the colour of the text. Its meaning is always in a text beside it. */
export declare function icon(name: keyof typeof paths, size?: number): SVGTemplateResult;
/** The paths of an icon, on Lucide's grid. */
export declare function drawing(paths: SVGTemplateResult, size: number): SVGTemplateResult;
export {};
