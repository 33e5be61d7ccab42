/** The delay before the first attempt to reconnect, in milliseconds. */
const FIRST_MS = 500;
/** The longest delay. */
const LAST_MS = 30_000;

/**
 * How long to wait before attempt number `failures`, in milliseconds: exponential, with full jitter, so that pages that lost
 * the same hub do not return at the same moment. Never sooner than the server asked for.
 */
export function backoff(failures: number, random: number, retryAfter: number | null = null): number {
  const limit = Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(Math.max(failures - 1, 0), 10));
  const delay = limit / 2 + (random * limit) / 2;
  return retryAfter === null ? delay : Math.max(retryAfter + random * FIRST_MS, delay);
}
