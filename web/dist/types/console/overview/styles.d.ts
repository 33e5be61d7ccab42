export declare const overviewStyles: import("lit").CSSResult;
