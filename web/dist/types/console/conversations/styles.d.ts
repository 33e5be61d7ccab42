export declare const conversationStyles: import("lit").CSSResult;
