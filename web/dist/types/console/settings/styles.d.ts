export declare const settingsStyles: import("lit").CSSResult;
