export declare const inboxPageStyles: import("lit").CSSResult;
