/** The frame of the console, and what all pages share. */
export declare const shellStyles: import("lit").CSSResult;
/** Headings, cards, tables, fields and notes. */
export declare const partStyles: import("lit").CSSResult;
