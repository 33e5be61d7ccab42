export interface ToolResult {
    readonly tool: string;
    readonly output: unknown;
}
/** Remembers which call has which tool, because most streams name the tool only in the call. */
export declare class ToolResults {
    #private;
    /** The results in an element of a stream, in a message, or in a list of messages. */
    in(value: unknown): ToolResult[];
}
