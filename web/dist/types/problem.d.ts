/** Why something that the person wanted did not happen. The strings of an element have a text for each code. */
export interface Problem {
    readonly code: 'unreachable' | 'signed_out' | 'too_many' | 'answered' | 'gone' | 'failed';
    /** The text of the hub or of the page, or the label of the button that was pressed first. */
    readonly detail: string | null;
}
export declare function problemOf(error: unknown): Problem;
/** Whether the same request may succeed later. */
export declare function canRetry({ code }: Problem): boolean;
