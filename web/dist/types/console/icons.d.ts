import { type SVGTemplateResult } from 'lit';
declare const paths: {
    inbox: import("lit-html").TemplateResult<2>;
    conversations: import("lit-html").TemplateResult<2>;
    settings: import("lit-html").TemplateResult<2>;
    live: import("lit-html").TemplateResult<2>;
    deliveries: import("lit-html").TemplateResult<2>;
    subscribers: import("lit-html").TemplateResult<2>;
    playground: import("lit-html").TemplateResult<2>;
    overview: import("lit-html").TemplateResult<2>;
    search: import("lit-html").TemplateResult<2>;
    signOut: import("lit-html").TemplateResult<2>;
    next: import("lit-html").TemplateResult<2>;
    lock: import("lit-html").TemplateResult<2>;
    copy: import("lit-html").TemplateResult<2>;
    undo: import("lit-html").TemplateResult<2>;
    send: import("lit-html").TemplateResult<2>;
    view: import("lit-html").TemplateResult<2>;
    pause: import("lit-html").TemplateResult<2>;
    play: import("lit-html").TemplateResult<2>;
    more: import("lit-html").TemplateResult<2>;
    back: import("lit-html").TemplateResult<2>;
    keys: import("lit-html").TemplateResult<2>;
};
export type ConsoleIcon = keyof typeof paths;
/** An icon in the colour of the text. Its meaning is always in a text beside it. */
export declare function consoleIcon(name: ConsoleIcon, size?: number): SVGTemplateResult;
export {};
