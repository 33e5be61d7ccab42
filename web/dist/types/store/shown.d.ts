/** The ids that were shown, so that none is shown twice. The oldest are forgotten beyond a bound. */
export declare class ShownIds {
    #private;
    /** With a key, the ids outlive the page. */
    constructor(key?: string | null);
    has(id: string): boolean;
    add(id: string): void;
}
