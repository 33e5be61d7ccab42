export interface Visible {
    readonly first: number;
    /** After the last one. */
    readonly end: number;
    /** The height of the rows before the first, and of those after the last, in pixels. */
    readonly before: number;
    readonly after: number;
}
export declare class Heights {
    #private;
    constructor(estimate: number);
    get count(): number;
    get total(): number;
    /** The rows, in their order. */
    setKeys(keys: readonly string[]): void;
    /** Returns whether the height is another than before. */
    measure(key: string, height: number): boolean;
    /** The height of all rows before this one. */
    offset(index: number): number;
    indexOf(key: string): number | null;
    /** The rows between two positions, with `extra` pixels of rows around them. */
    visible(top: number, height: number, extra: number): Visible;
}
