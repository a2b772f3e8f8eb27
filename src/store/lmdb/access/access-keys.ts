import { uuidBytes } from '../../../domain/values/uuid.ts';
import { ledgerKey, ledgerKeyBytes } from '../keys.ts';

/**
 * Keys of the access tables:
 *
 *   actor | 0 | block          → the block (access-block.ts)
 *   actor | 1 | ledger | block → the number of events in the block, then the places in it of the ledger's events; no
 *                                places if all events of the block are the ledger's
 *
 * `block` is the id of the first event and the number of events that the key stands for. So blocks are sorted by time,
 * and an offset skips blocks without reading them.
 */
const BLOCKS = 0;
const LEDGERS = 1;
const ID_BYTES = 16;
const NAME_BYTES = ID_BYTES + 1;

export function actorPrefix(actorId: string): Buffer {
  return Buffer.concat([uuidBytes(actorId), Buffer.of(BLOCKS)]);
}

/** Key prefix of the entries that find an actor's blocks by ledger, from the prefix of the blocks. */
export function actorLedgerPrefix(actorBlocks: Buffer, ledgerId: string): Buffer {
  const prefix = Buffer.allocUnsafe(actorBlocks.length + ledgerKeyBytes);
  prefix.set(actorBlocks);
  prefix[ID_BYTES] = LEDGERS;
  prefix.set(ledgerKey(ledgerId), actorBlocks.length);
  return prefix;
}

export function blockKey(prefix: Buffer, firstId: Buffer, count: number): Buffer {
  const key = Buffer.allocUnsafe(prefix.length + NAME_BYTES);
  key.set(prefix);
  key.set(firstId, prefix.length);
  key[key.length - 1] = count;
  return key;
}

/** A key that sorts before all blocks that begin at or after a time (ms since 1970), and after all earlier blocks. */
export function blockTimeKey(prefix: Buffer, timeMs: number): Buffer {
  const key = Buffer.alloc(prefix.length + NAME_BYTES);
  key.set(prefix);
  key.writeUIntBE(timeMs, prefix.length, 6);
  return key;
}

export function timeOfBlockKey(key: Uint8Array): number {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  return bytes.readUIntBE(bytes.length - NAME_BYTES, 6);
}

/** How many events the key stands for: those of the block, or those of the key's ledger within the block. */
export function countOfBlockKey(key: Uint8Array): number {
  return key[key.length - 1] ?? 0;
}

export function formatPlaces(blockCount: number, places: readonly number[]): Buffer {
  return places.length === blockCount ? Buffer.of(blockCount) : Buffer.from([blockCount, ...places]);
}

export function blockOfLedgerKey(actorBlocks: Buffer, key: Uint8Array, value: Uint8Array): Buffer {
  const name = Buffer.from(key.subarray(key.length - NAME_BYTES));
  name[ID_BYTES] = value[0] ?? 0;
  return Buffer.concat([actorBlocks, name]);
}

/** The places in a ledger's entry. null if all events of the block are the ledger's. */
export function placesOf(value: Uint8Array): readonly number[] | null {
  return value.length <= 1 ? null : [...value.subarray(1)];
}
