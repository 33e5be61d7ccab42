import { HubHttp } from '../client/http.ts';
import type { Page } from './wire.ts';
export type Query = Readonly<Record<string, string | number | null>>;
export declare class Api {
    #private;
    readonly http: HubHttp;
    /** `ended` is called when the hub no longer accepts the token. */
    constructor(token: string, ended: () => void);
    get<Body>(path: string, query?: Query): Promise<Body>;
    list<Item>(path: string, query?: Query): Promise<Page<Item>>;
    json(method: string, path: string, body?: unknown): Promise<unknown>;
}
/** The query of an address; what is null is left out. */
export declare function search(query: Query): string;
/** One segment of a path. */
export declare const segment: typeof encodeURIComponent;
/** What failed, why, and what to do. */
export declare function explain(what: string, error: unknown): string;
