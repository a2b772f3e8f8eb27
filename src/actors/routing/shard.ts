import { sha256 } from '../../domain/keys/hash.ts';

/** The shard of a ledger: the first 32 bits of SHA-256("v1|" + ledger id), modulo the number of shards. */
export function shardOf(ledgerId: string, shardCount: number): number {
  return sha256(`v1|${ledgerId}`).readUInt32BE(0) % shardCount;
}
