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
    const signed = size === null ? await this.#newest('size', 1) : await this.#signed('size', size);
    const { origin, root, checkpoint } = signed;
    return { origin, size: BigInt(signed.size), rootHash: encodeBase64(root), checkpoint };
  }

  /** `indexField`: the field that is refused if the tree ends before the index. */
  async inclusion(indexField: string, index: number, size: number | null) {
    if (size !== null && index >= size)
      throw invalidField(indexField, 'an event of the tree: its index must be below the size');
    const signed = size === null ? await this.#newest(indexField, index + 1) : await this.#signed('size', size);
    return this.#inclusionIn(signed, index);
  }

  /** null: the log has no such certain size. */
  async inclusionAtOwnPlace(index: number) {
    const signed = await this.#logs.checkpoint(this.#log, index + 1, this.#walk);
    return signed === null ? null : this.#inclusionIn(signed, index);
  }

  async consistency(from: number, to: number | null) {
    // The larger size first: it is the one that may need a write.
    const newer = to === null ? await this.#newest('from', from) : await this.#signed('to', to);
    const older = await this.#signed('from', from);
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

  /** The newest checkpoint, which has to cover `least` events. `field`: what is refused if the log has fewer. */
  async #newest(field: string, least: number): Promise<SignedSize> {
    const size = await this.#logs.newestSize(this.#log, this.#walk);
    if (size === 0) throw new LedgerError('unavailable', 'This log has no certain event yet: retry in a moment.');
    return this.#signed(field, Math.max(size, least), true);
  }

  /** Throws `invalid_argument` for a size above the head. A log that is behind does not know it: `log_behind`. */
  async #signed(field: string, size: number, orLarger = false): Promise<SignedSize> {
    const signed = await this.#logs.checkpoint(this.#log, size, this.#walk, orLarger);
    if (signed === null) throw invalidField(field, 'within the certain events of this log');
    return signed;
  }
}
