import type { components, operations } from '../api.d.ts';
import { type Notification } from '../notification.ts';
export type WireProblem = components['schemas']['Problem'];
export type WireSettings = components['schemas']['Settings'];
export type InboxQuery = NonNullable<operations['inbox_list']['parameters']['query']>;
/** Reads an inbox item of the hub; null if it is none. */
export declare function fromHub(value: unknown): Notification | null;
