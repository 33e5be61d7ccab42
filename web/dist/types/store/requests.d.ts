import type { Problem } from '../problem.js';
import { Observable } from './observable.js';
/** What the person asked for with one notification, and how it went. */
export interface Request {
    readonly action: 'press' | 'dismiss' | 'read' | 'unread' | 'restore';
    /** The index of the pressed button. */
    readonly index: number | null;
    readonly state: 'sending' | 'sent' | 'failed';
    readonly problem: Problem | null;
}
/** The last request about each notification. */
export declare class Requests {
    readonly all: Observable<ReadonlyMap<string, Request>>;
    of(id: string): Request | null;
    remember(id: string, request: Request): void;
    /** Forgets the request, if it is in this state. */
    forget(id: string, state: Request['state']): void;
}
