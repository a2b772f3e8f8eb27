import { LedgerError } from '../../src/domain/errors.ts';
import { wrongHash } from '../../src/domain/event/integrity.ts';
import { CorruptRow, parseRow } from '../../src/domain/event/row.ts';
import { signCheckpoint } from '../../src/domain/log/checkpoint.ts';
import { originOf } from '../../src/domain/log/origin.ts';
import { subtreeHash } from '../../src/domain/log/subtree-hash.ts';
import { leafHash, type Subtree } from '../../src/domain/log/tree.ts';
import { consistencyPath, inclusionPath } from '../../src/domain/log/tree-proof.ts';
import type { Log, ProvenLogs, SignedSize } from '../../src/service/proofs/proven-logs.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { MemoryHashes } from './log-hashes.ts';
import { vectorSigner } from './log-keys.ts';

const rowsAtOnce = 1_000;

/** The trees of a store, made anew from all rows for each call. It signs with the key of the vectors. */
export class MemoryProvenLogs implements ProvenLogs {
  readonly #ledgers: LedgerStore;
  readonly #failure: () => LedgerError | null;

  /** `failure`: thrown in place of each signature, as by a log that is behind or under construction. */
  constructor(ledgers: LedgerStore, failure: () => LedgerError | null = () => null) {
    this.#ledgers = ledgers;
    this.#failure = failure;
  }

  async newestSize(log: Log): Promise<number> {
    return (await this.#leaves(log)).length;
  }

  async checkpoint(log: Log, size: number): Promise<SignedSize | null> {
    const failure = this.#failure();
    // A log that is behind does not know its head.
    if (failure?.details.reason === 'log_behind') throw failure;
    const leaves = await this.#leaves(log);
    if (size > leaves.length) return null;
    if (failure !== null) throw failure;
    const origin = originOf({ serviceName: vectorSigner.serviceName, kind: log.kind, id: log.id });
    const root = hashOf(leaves, { from: 0, to: size });
    return { origin, size, root, checkpoint: signCheckpoint({ origin, size, root }, vectorSigner) };
  }

  async inclusion(log: Log, index: number, size: number): Promise<readonly Uint8Array[]> {
    const leaves = await this.#leaves(log);
    return inclusionPath(index, size).map((subtree) => hashOf(leaves, subtree));
  }

  async consistency(log: Log, from: number, to: number): Promise<readonly Uint8Array[]> {
    const leaves = await this.#leaves(log);
    return consistencyPath(from, to).map((subtree) => hashOf(leaves, subtree));
  }

  /** Throws `broken_row`. */
  async #leaves({ kind, id, ledgerId }: Log): Promise<readonly Uint8Array[]> {
    const leaves: Uint8Array[] = [];
    for (let seq = 0; ; ) {
      const entries = await this.#ledgers.read(ledgerId, seq, rowsAtOnce);
      for (const { row } of entries) {
        const event = readRow(row, seq);
        if (kind === 'ledger') leaves.push(leafHash(Buffer.from(event.hash, 'hex')));
        else if (event.master?.id === id) leaves.push(leafHash(Buffer.from(event.contentHash, 'hex')));
        seq += 1;
      }
      if (entries.length < rowsAtOnce) return leaves;
    }
  }
}

function readRow(row: string, seq: number) {
  try {
    const event = parseRow(row);
    if (wrongHash(event) === null) return event;
  } catch (error) {
    if (!(error instanceof CorruptRow)) throw error;
  }
  throw new LedgerError('unavailable', 'A stored event is damaged.', { reason: 'broken_row', seq });
}

function hashOf(leaves: readonly Uint8Array[], subtree: Subtree): Uint8Array {
  return subtreeHash(subtree, new MemoryHashes(leaves).hashAt);
}
