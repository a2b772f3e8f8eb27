import type { Checkpoint } from '../../domain/log/checkpoint.ts';
import { parseProofFile } from '../../domain/log/proof-file.ts';
import { ProofRefused } from '../../domain/log/proof-refused.ts';
import { mayRetry } from '../call/retry.ts';
import type { Event } from '../event.ts';
import type { LogName, ProofReader } from '../proofs/proof-reading.ts';
import type { FollowRequest } from './follow-api.ts';
import { FollowedTree } from './followed-tree.ts';

interface HeartbeatCheckpointsParts {
  readonly request: FollowRequest;
  readonly proofs: Pick<ProofReader, 'takeNote' | 'proveRecord'>;
  /** Is aborted when a checkpoint is refused. */
  readonly ending: AbortController;
  /** The events that were handed out contradict the checkpoint. May throw. */
  contradicted(checkpoint: Checkpoint): void;
}

/** Verifies and keeps the checkpoints of heartbeats, and compares them with the events that are handed out. */
export class HeartbeatCheckpoints {
  readonly #parts: HeartbeatCheckpointsParts;
  readonly #log: LogName;
  /** null: a segment has gaps, and its readers get no checkpoints. */
  readonly #tree: FollowedTree | null;
  /** Resolves when the checkpoint at hand is kept or has been refused. null: none is at hand. */
  #keeping: Promise<void> | null = null;

  constructor(parts: HeartbeatCheckpointsParts) {
    this.#parts = parts;
    const { masterId, ledgerId = '', segment } = parts.request;
    this.#log = masterId === undefined ? { kind: 'ledger', id: ledgerId } : { kind: 'master', id: masterId };
    this.#tree = segment && masterId === undefined ? null : new FollowedTree(this.#log.kind);
  }

  beginBehind(event: Event): void {
    this.#tree?.beginBehind(event);
  }

  /** Takes the next event that is handed out. Throws what `contradicted` throws. */
  take(event: Event): void {
    this.#tell(this.#tree?.take(event) ?? null);
  }

  /**
   * Verifies and keeps a checkpoint, while events go on. Following ends if it is refused. If the service cannot be
   * asked just now, the next heartbeat brings another one; so it does while one is being verified.
   */
  keep(note: string): void {
    const { ending } = this.#parts;
    this.#keeping ??= this.#keep(note)
      .catch((thrown: unknown) => {
        if (!mayRetry(thrown, true)) ending.abort(thrown);
      })
      .finally(() => {
        this.#keeping = null;
      });
  }

  /** Resolves when the checkpoint at hand is kept or has been refused. */
  async settled(): Promise<void> {
    await this.#keeping;
  }

  async #keep(note: string): Promise<void> {
    const { proofs, ending } = this.#parts;
    let contradicted = null as Checkpoint | null;
    try {
      const checkpoint = await proofs.takeNote(this.#log, note, { signal: ending.signal }, (verified) => {
        contradicted = this.#tree?.compare(verified) ?? null;
      });
      contradicted ??= await this.#compare(checkpoint);
    } catch (thrown) {
      // Two notes that contradict each other say more than one that contradicts the events.
      if (contradicted === null || thrown instanceof ProofRefused) throw thrown;
    }
    this.#tell(contradicted);
  }

  /** Has the beginning of the tree proved first, if it is not known. Returns the checkpoint if it is contradicted. */
  async #compare(checkpoint: Checkpoint): Promise<Checkpoint | null> {
    const tree = this.#tree;
    if (tree === null) return null;
    const { proofs, ending } = this.#parts;
    const before = tree.toBeProved;
    if (before !== null) {
      const { proof } = await proofs.proveRecord(this.#log, before, { signal: ending.signal });
      tree.learn(before, parseProofFile(proof)?.hashes ?? []);
    }
    return tree.compare(checkpoint);
  }

  #tell(checkpoint: Checkpoint | null): void {
    if (checkpoint !== null) this.#parts.contradicted(checkpoint);
  }
}
