/**
 * Cleans text from outside as the hub does: every line break becomes a line feed, and invisible or reordering characters are
 * removed, except those that scripts and emoji need.
 */
export declare function clean(text: string): string;
/** [`clean`], on one line. */
export declare function oneLine(text: string): string;
/** The number of Unicode scalar values: what the limits of the tools count. */
export declare function length(text: string): number;
