/** The public API of the client in Node: `ledger-trust/client`, and `ledger-trust-client`. */
export * from './api.ts';
export { createClient } from './client.ts';
export { Watermarks, type WatermarksOptions } from './proofs/watermarks.ts';
