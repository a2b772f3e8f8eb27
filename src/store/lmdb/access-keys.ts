import { uuidBytes } from '../../domain/uuid.ts';
import { ledgerKey, ledgerKeyBytes } from './keys.ts';

/**
 * Keys of the access tables:
 *
 *   actor | 0 | block          → the block (access-block.ts)
 *   actor | 1 | ledger | block → places of the ledger's events within that block; none: all of them
 *
 * where `block` is the id of its first event and the number of its events, so that blocks lie in the order of time and
 * an offset is counted off without reading any.
 */
const BLOCKS = 0;
const LEDGERS = 1;
const ID_BYTES = 16;
const NAME_BYTES = ID_BYTES + 1;

/** What the blocks of an actor stand behind. */
export function actorPrefix(actorId: string): Buffer {
  return Buffer.concat([uuidBytes(actorId), Buffer.of(BLOCKS)]);
}

/** What an actor's blocks that hold events of a ledger stand behind. */
export function actorLedgerPrefix(actorId: string, ledgerId: string): Buffer {
  return actorLedger(actorPrefix(actorId), ledgerId);
}

/** The same, from what the actor's blocks stand behind. */
export function actorLedger(actorBlocks: Buffer, ledgerId: string): Buffer {
  const prefix = Buffer.allocUnsafe(actorBlocks.length + ledgerKeyBytes);
  prefix.set(actorBlocks);
  prefix[ID_BYTES] = LEDGERS;
  prefix.set(ledgerKey(ledgerId), actorBlocks.length);
  return prefix;
}

/** prefix | first event | number of events */
export function blockKey(prefix: Buffer, firstId: Buffer, count: number): Buffer {
  const key = Buffer.allocUnsafe(prefix.length + NAME_BYTES);
  key.set(prefix);
  key.set(firstId, prefix.length);
  key[key.length - 1] = count;
  return key;
}

/** Before all blocks that begin at or after a time, behind all that begin earlier. */
export function blockTimeKey(prefix: Buffer, timeMs: number): Buffer {
  const key = Buffer.alloc(prefix.length + NAME_BYTES);
  key.set(prefix);
  key.writeUIntBE(timeMs, prefix.length, 6);
  return key;
}

/** When the first event of a block was made, in milliseconds since 1970. */
export function timeOfBlockKey(key: Uint8Array): number {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.byteLength);
  return bytes.readUIntBE(bytes.length - NAME_BYTES, 6);
}

/** How many events the key stands for: of the block, or of its ledger within the block. */
export function countOfBlockKey(key: Uint8Array): number {
  return key[key.length - 1] ?? 0;
}

/** The value under an actor's ledger: how many events the block has, then the places of those that are the ledger's. */
export function formatPlaces(blockCount: number, places: readonly number[]): Buffer {
  return places.length === blockCount ? Buffer.of(blockCount) : Buffer.from([blockCount, ...places]);
}

/** The key of the block that a ledger's entry points into. */
export function blockOfLedgerKey(actorBlocks: Buffer, key: Uint8Array, value: Uint8Array): Buffer {
  const name = Buffer.from(key.subarray(key.length - NAME_BYTES));
  name[ID_BYTES] = value[0] ?? 0;
  return Buffer.concat([actorBlocks, name]);
}

/** null: the whole block. */
export function placesOf(value: Uint8Array): readonly number[] | null {
  return value.length <= 1 ? null : [...value.subarray(1)];
}
