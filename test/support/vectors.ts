import { readFileSync } from 'node:fs';
import type { JsonObject, JsonValue } from '../../src/client/index.ts';

/** An event of the golden chain, with the intermediate results of everything that is computed of it. */
export interface VectorEvent {
  readonly content: {
    readonly [name: string]: JsonValue;
    readonly master: { readonly id: string; readonly prev_hash: string; readonly seq: number } | null;
  };
  readonly payload: JsonObject;
  readonly actor_sig_payload: JsonObject | null;
  readonly prev_hash: string;
  readonly canonical_content: string;
  readonly content_hash: string;
  readonly hash: string;
  readonly authority_sig?: string;
  readonly authority_key_id?: string;
}

interface VectorSignature {
  readonly name: string;
  readonly event_type: string;
  readonly ledger_id: string;
  readonly sig_payload: JsonObject;
  readonly canonical_json: string;
  readonly digest_hex: string;
  readonly signature_base64: string;
}

/** What a file of vectors holds. */
export function readVectors<T>(name: string, folder: 'test/vectors' | 'conformance/vectors' = 'test/vectors'): T {
  return JSON.parse(readFileSync(new URL(`../../${folder}/${name}`, import.meta.url), 'utf8'));
}

/** What another program wrote by the rules of docs/verifying.md: keys, signatures, and the events of one ledger. */
export const vectors = readVectors<{
  /** The supplier's, of all signatures. */
  readonly kid: string;
  readonly keys: {
    readonly [who in 'supplier' | 'authority']: { readonly seed_hex: string; readonly public_key_base64: string };
  };
  readonly signatures: readonly VectorSignature[];
  readonly chain: readonly VectorEvent[];
}>('events.json');
