import type { Access } from './access.ts';
import type { WireProblem } from './wire.ts';
/** A request that did not succeed. `status` is 0 where no answer came. */
export declare class HubError extends Error {
    readonly status: number;
    readonly problem: WireProblem | null;
    /** What the hub asked to wait, in milliseconds. */
    readonly retryAfter: number | null;
    readonly name = "HubError";
    constructor(status: number, message: string, problem?: WireProblem | null, 
    /** What the hub asked to wait, in milliseconds. */
    retryAfter?: number | null);
}
export declare class HubHttp {
    #private;
    constructor(access: Access);
    /** Sends a request and returns the JSON of its answer. */
    json(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<unknown>;
    /** Sends a request and returns its answer; any other than 2xx is thrown. */
    send(path: string, init: RequestInit): Promise<Response>;
}
