export type Field = {
    readonly name: string;
    readonly about: string;
    readonly required: boolean;
} & ({
    readonly kind: 'text';
    readonly long: boolean;
    readonly maxLength: number | null;
} | {
    readonly kind: 'number';
    readonly minimum: number | null;
    readonly maximum: number | null;
} | {
    readonly kind: 'boolean';
} | {
    readonly kind: 'choice';
    readonly choices: readonly string[];
} | {
    readonly kind: 'list';
    readonly fields: readonly Field[];
    readonly max: number;
} | {
    readonly kind: 'json';
});
/** The fields of an object's schema, in its order; those that are required first. */
export declare function fieldsOf(schema: unknown): readonly Field[];
