export declare const signInStyles: import("lit").CSSResult;
