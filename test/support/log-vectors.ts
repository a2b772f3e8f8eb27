import { readVectors } from './vectors.ts';

/** What another program wrote by the rules of docs/proofs.md (conformance/vectors/logs.json). */
export interface VectorLog {
  readonly origin: string;
  readonly vkey: string;
  readonly leaf_data_hex: readonly string[];
  readonly checkpoints: readonly {
    readonly size: number;
    readonly root_hex: string;
    readonly text: string;
    readonly note: string;
  }[];
  readonly proofs_at_own_place: readonly string[];
  readonly proofs_in_whole: readonly string[];
}

interface VectorConsistency {
  readonly from: number;
  readonly to: number;
  readonly proof_hex: readonly string[];
}

interface VectorInclusion {
  readonly index: number;
  readonly size: number;
  readonly proof_hex: readonly string[];
}

export const logVectors = readVectors<{
  readonly log_key: { readonly seed_hex: string; readonly public_key_base64: string };
  readonly endorsement: {
    readonly digest_hex: string;
    readonly public_key_base64: string;
    readonly sig: string;
  };
  readonly ledger: VectorLog & { readonly consistency: readonly VectorConsistency[] };
  readonly masters: readonly VectorLog[];
  readonly origins: { readonly good: readonly string[]; readonly bad: readonly string[] };
  readonly refused: readonly {
    readonly what: string;
    readonly origin: string;
    readonly index: number;
    readonly record_hex: string;
    readonly proof: string;
  }[];
}>('logs.json', 'conformance/vectors');

/** By `what` of the refused proofs: the reason that this project gives. */
export const refusalReasons: Readonly<Record<string, string>> = {
  'another index than the expected one': 'wrong_index',
  'another record': 'not_included',
  'a checkpoint of the ledger, its signature under the name of the master': 'wrong_origin',
  "a key that is not the log's": 'unknown_log_key',
  'an upper-case id in the origin': 'wrong_origin',
  'a hash too many': 'not_included',
  'a hash too few': 'not_included',
  'an index beyond the size': 'not_included',
  'an extension line': 'malformed',
};

export const merkleVectors = readVectors<{
  readonly small: {
    readonly leaves_hex: readonly string[];
    readonly roots_hex_by_size: readonly string[];
    readonly inclusion: readonly VectorInclusion[];
    readonly consistency: readonly VectorConsistency[];
  };
  readonly big: {
    readonly size: number;
    readonly roots_hex: Readonly<Record<string, string>>;
    readonly edges_hex: Readonly<Record<string, readonly string[]>>;
    readonly inclusion: readonly VectorInclusion[];
    readonly consistency: readonly VectorConsistency[];
    readonly tiles: readonly { readonly path: string; readonly bytes: number; readonly sha256_hex: string }[];
  };
}>('merkle.json', 'conformance/vectors');

export const ofHex = (hex: string): Buffer => Buffer.from(hex, 'hex');
export const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
