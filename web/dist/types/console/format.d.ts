/** `15:30:01.204` */
export declare function exactTime(time: string): string;
/** A text of the hub with its times as people read them. */
export declare function withTimes(text: string): string;
/** `15:30:01`, or with the day where it is another than today. */
export declare function shortTime(time: string | null, now?: number): string;
/** `+300 ms`, `+1.4 s`, `+2 min`: the time from one moment to another. */
export declare function later(from: string, at: string): string;
export declare function length(milliseconds: number): string;
/** How long until a time: `in 6 h`; `now` where it has come. */
export declare function until(time: string, now?: number): string;
export declare function ago(time: string, now?: number): string;
export declare function count(value: number): string;
/** `1 event`, `2 events`. */
export declare function plural(value: number, one: string, many?: string): string;
