export declare const deliveriesStyles: import("lit").CSSResult;
