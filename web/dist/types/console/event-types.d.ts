export interface EventType {
    readonly type: string;
    readonly meaning: string;
    readonly severity: string;
    readonly fields: readonly {
        readonly name: string;
        readonly meaning: string;
        readonly example: unknown;
    }[];
}
export declare const EVENT_TYPES: readonly EventType[];
