import type { Statistics } from '../wire.ts';
export interface Series {
    readonly name: string;
    readonly values: readonly (number | null)[];
    /** The name of the colour's variable. */
    readonly colour: string;
}
export interface Plot {
    readonly title: string;
    readonly unit: string;
    readonly series: readonly Series[];
}
export declare function plotsOf(statistics: Statistics): readonly Plot[];
/** The seconds since 1970 of each minute. */
export declare function timesOf({ start, step_seconds: step, events }: Statistics): number[];
/** The sum of a column. */
export declare function sum(values: readonly (number | null)[]): number;
