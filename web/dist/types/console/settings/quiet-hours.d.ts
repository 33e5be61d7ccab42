export interface QuietHours {
    readonly start: string;
    readonly end: string;
    readonly timezone: string;
}
export declare const DAY = 1440;
/** `22:30` as minutes since midnight. */
export declare function minutesOf(time: string): number;
export declare function timeOf(minutes: number): string;
/** The minutes since midnight in a time zone; in the browser's where it does not know the zone. */
export declare function minuteIn(timezone: string, now: number): number;
/** How many minutes after `start` the time is, around midnight. */
export declare function after(start: number, minute: number): number;
export declare function isQuiet(quiet: QuietHours, now: number): boolean;
/** What the hours mean now: `Quiet until 07:00, in 6 h 20 min`. */
export declare function describe(quiet: QuietHours, now: number): string;
export declare function duration(minutes: number): string;
/** The parts of a day that are quiet, as pieces between 0 and 1440: two where it goes over midnight. */
export declare function pieces(start: number, end: number): readonly (readonly [number, number])[];
