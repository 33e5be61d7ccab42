/** All pages are in the console's shadow root, so it has the style sheets of all. */
export declare const pageStyles: import("lit").CSSResult[];
