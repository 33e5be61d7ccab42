export type Part = {
    readonly kind: 'text';
    readonly text: string;
} | {
    readonly kind: 'value';
    readonly name: string;
    readonly value: string;
} | {
    readonly kind: 'list';
    readonly name: string;
    readonly values: readonly string[];
} | {
    readonly kind: 'table';
    readonly name: string;
    readonly columns: readonly string[];
    readonly rows: readonly (readonly string[])[];
};
export declare function parseToon(content: string): readonly Part[];
/** Splits at commas outside of quotes. */
export declare function cells(line: string): string[];
