/**
 * When a test that hangs is ended. No bound of the service is judged by these: a test of one says it itself. On a
 * shared host a disk may take 200 ms for each flush, and a processor may be away for seconds.
 */
export const timeouts = { testTimeout: 60_000, hookTimeout: 120_000, expect: { poll: { timeout: 10_000 } } };
