/**
 * How long to wait before attempt number `failures`, in milliseconds: exponential, with full jitter, so that pages that lost
 * the same hub do not return at the same moment. Never sooner than the server asked for.
 */
export declare function backoff(failures: number, random: number, retryAfter?: number | null): number;
