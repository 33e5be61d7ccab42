import type { Values } from './form.ts';
import type { Field } from './schema.ts';
import type { Tool } from './tools.ts';
export interface Subject {
    readonly kind: 'tool' | 'event';
    readonly name: string;
    readonly about: string;
    readonly fields: readonly Field[];
    readonly first: Values;
}
export interface Address {
    readonly user: string;
    readonly conversation: string;
}
export declare function toolSubject({ name, description, schema }: Tool): Subject;
/** The known events that may be published; `user.message` comes only from the messages call. */
export declare function eventSubjects(): readonly Subject[];
export interface Call {
    readonly path: string;
    readonly body: unknown;
}
export declare function callOf({ kind, name }: Subject, values: Values, { user, conversation }: Address): Call;
