/** A server-sent event. */
export interface SseEvent {
    readonly type: string;
    readonly data: string;
    /** The id of the stream's position, as of this event. */
    readonly id: string | null;
}
/** Parses a stream of server-sent events that arrives in pieces of any size (HTML standard, 9.2.6). */
export declare class SseParser {
    #private;
    /** Returns the events that are complete with this piece. */
    push(piece: string): SseEvent[];
}
