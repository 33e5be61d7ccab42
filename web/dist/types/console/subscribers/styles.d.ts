export declare const subscriberStyles: import("lit").CSSResult;
