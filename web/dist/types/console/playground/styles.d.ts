export declare const playgroundStyles: import("lit").CSSResult;
