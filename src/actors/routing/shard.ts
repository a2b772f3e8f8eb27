import { sha256Buffer } from '../../domain/keys/hash-buffer.ts';

/** The shard of a ledger: the first 32 bits of SHA-256("v1|" + ledger id), modulo the number of shards. */
export function shardOf(ledgerId: string, shardCount: number): number {
  return sha256Buffer(`v1|${ledgerId}`).readUInt32BE(0) % shardCount;
}
