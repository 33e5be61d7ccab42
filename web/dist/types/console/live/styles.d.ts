export declare const liveStyles: import("lit").CSSResult;
