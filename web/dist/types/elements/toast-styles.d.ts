export declare const toastStyles: import("lit").CSSResult;
