import { invalidField, LedgerError } from '../../domain/errors.ts';
import { encodeBase64 } from '../../domain/keys/base64.ts';
import { formatProofFile } from '../../domain/log/proof-file.ts';
import type { Walk } from '../walking/walk.ts';
import type { Log, ProvenLogs, SignedSize } from './proven-logs.ts';

/** The answers about one log, for a caller whose access was checked. Sizes are null for the newest certain size. */
export class LogProofs {
  readonly #logs: ProvenLogs;
  readonly #log: Log;
  readonly #walk: Walk;

  constructor(logs: ProvenLogs, log: Log, walk: Walk) {
    this.#logs = logs;
    this.#log = log;
    this.#walk = walk;
  }

  async checkpoint(size: number | null) {
    const { origin, size: covered, root, checkpoint } = await this.#signed('size', size ?? (await this.#newestSize()));
    return { origin, size: BigInt(covered), rootHash: encodeBase64(root), checkpoint };
  }

  /** `indexField`: the field that is refused if the tree ends before the index. */
  async inclusion(indexField: string, index: number, size: number | null) {
    if (size !== null && index >= size) throw outsideTree(indexField);
    const covered = size ?? (await this.#newestSize());
    if (index < covered) return this.#inclusionIn(await this.#signed('size', covered), index);
    return this.#inclusionIn(await this.#signed(indexField, index + 1), index);
  }

  /** null: the log has no such certain size. */
  async inclusionAtOwnPlace(index: number) {
    const signed = await this.#logs.checkpoint(this.#log, index + 1, this.#walk);
    return signed === null ? null : this.#inclusionIn(signed, index);
  }

  async consistency(from: number, to: number | null) {
    const older = await this.#signed('from', from);
    const newer = await this.#signed('to', to ?? (await this.#newestSize()));
    const hashes = await this.#logs.consistency(this.#log, from, newer.size, this.#walk);
    return {
      origin: newer.origin,
      from: BigInt(from),
      to: BigInt(newer.size),
      hashes: hashes.map(encodeBase64),
      checkpointFrom: older.checkpoint,
      checkpointTo: newer.checkpoint,
    };
  }

  async #inclusionIn({ origin, size, checkpoint }: SignedSize, index: number) {
    const hashes = await this.#logs.inclusion(this.#log, index, size, this.#walk);
    return {
      origin,
      index: BigInt(index),
      size: BigInt(size),
      proof: formatProofFile({ index, hashes, checkpoint }),
    };
  }

  async #newestSize(): Promise<number> {
    const size = await this.#logs.newestSize(this.#log, this.#walk);
    if (size === 0) throw new LedgerError('unavailable', 'This log has no certain event yet: retry in a moment.');
    return size;
  }

  /** Throws `invalid_argument` above the head, but `log_behind` in its place: a log that is behind does not know its head. */
  async #signed(field: string, size: number): Promise<SignedSize> {
    const signed = await this.#logs.checkpoint(this.#log, size, this.#walk);
    if (signed === null) throw beyondHead(field);
    return signed;
  }
}

function beyondHead(field: string): LedgerError {
  return invalidField(field, 'at most the number of certain events of this log');
}

function outsideTree(field: string): LedgerError {
  return invalidField(field, 'an event of the tree: its index must be below the size');
}
