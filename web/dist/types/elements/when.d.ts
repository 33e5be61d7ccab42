/** How long ago a time is: `2 min ago`, `yesterday`; a date where it is more than a week. */
export declare function when(time: string, now: number, language: string | undefined): string;
/** A time of today, or of another day with its date. */
export declare function clockTime(time: string, now: number, language: string | undefined): string;
