import { LedgerError } from '../../src/domain/errors.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import { CompactRange } from '../../src/domain/log/compact-range.ts';
import { leafHash } from '../../src/domain/log/tree.ts';
import { isConsistent } from '../../src/domain/log/tree-proof.ts';
import type { Checkpoints } from '../../src/service/proofs/checkpoints.ts';
import type { Log, SignedSize } from '../../src/service/proofs/proven-logs.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { Violation } from '../support/history/history-check.ts';
import type { SimulatedNode, World } from './node.ts';
import type { SeededRandom } from './random.ts';

/** A checkpoint that a client was given. */
interface Note {
  readonly log: Log;
  readonly node: string;
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

export type NoteResult = 'given' | 'empty' | 'refused' | 'disconnected';

/** Every checkpoint that was ever given, in order. */
export class NoteBook {
  readonly notes: Note[] = [];
  /** What a node answered that is no answer, in words. */
  readonly broken: Violation[] = [];

  /** Asks a node for a checkpoint of a log, at the newest size or at an older one. */
  ask(world: World, node: SimulatedNode, log: Log, isNewest: boolean): Promise<NoteResult> {
    const { life, checkpoints } = node;
    const isCopy = world.logs.isCopy;
    return new Promise((resolve) => {
      life.onEnd(() => resolve('disconnected'));
      const give = async (): Promise<NoteResult> => {
        const walk = unboundedWalk();
        const newest = await checkpoints.newestSize(log, walk);
        if (newest === 0) return 'empty';
        const signed = await checkpoints.checkpoint(log, isNewest ? newest : world.random.between(1, newest), walk);
        if (signed === null) return 'refused';
        if (isCopy) this.broken.push(`copy: ${node.id} signed ${signed.origin} at size ${signed.size}`);
        this.#keep(log, node.id, signed);
        return 'given';
      };
      const answered = (result: NoteResult) => {
        if (result === 'given') world.counts.notes++;
        if (result === 'refused') world.counts.notesRefused++;
        resolve(result);
      };
      life.deliver(() =>
        give().then(
          (result) => life.deliver(() => answered(result)),
          (error: unknown) => {
            if (!(error instanceof LedgerError) || error.code === 'internal')
              this.broken.push(`broken: ${node.id} answered a checkpoint request with ${error}`);
            life.deliver(() => answered('refused'));
          },
        ),
      );
    });
  }

  /** Also of a node that pauses before it answers: its checkpoint may leave it later. */
  #keep(log: Log, node: string, { origin, size, root, checkpoint }: SignedSize): void {
    const note = { log, node, origin, size, root: Buffer.from(root) };
    if (!checkpoint.startsWith(`${origin}\n${size}\n${note.root.toString('base64')}\n`))
      this.broken.push(`broken: ${node} signed another text than ${nameOf(note)}`);
    this.notes.push(note);
  }
}

/** The events of all ledgers in a part of a run in which no row was lost. */
export type Era = ReadonlyMap<string, readonly LedgerEvent[]>;

/**
 * Whether the notes of each log agree with one another. `eras`: the events before each loss of rows, and those of the
 * end. Where no row was lost, every root is the one of the final events.
 */
export function checkNotes(notes: readonly Note[], eras: readonly Era[]): Violation[] {
  return Array.from(Map.groupBy(notes, ({ origin }) => origin).values()).flatMap((given) => {
    const bySize = given.toSorted((one, other) => one.size - other.size);
    const sizes = new Set(bySize.map(({ size }) => size));
    const trees = eras.flatMap((era) => (given[0] === undefined ? [] : rootsAt(leavesOf(given[0].log, era), sizes)));
    return bySize.flatMap((note, at) => {
      const before = bySize[at - 1] ?? note;
      const trees_ = trees.filter((roots) => roots.get(note.size)?.equals(note.root));
      if (trees_.length === 0) return [`root: ${nameOf(note)} has a root that no tree of the log has`];
      if (before.size === note.size && !before.root.equals(note.root))
        return [`contradiction: ${nameOf(before)} and ${nameOf(note)} have different roots`];
      if (!trees_.some((roots) => roots.get(before.size)?.equals(before.root)))
        return [`contradiction: ${nameOf(before)} is no beginning of ${nameOf(note)}`];
      return [];
    });
  });
}

/** Has some pairs of neighbours proven from what is stored at the end. */
export async function checkProofs(
  notes: readonly Note[],
  checkpoints: Checkpoints,
  random: SeededRandom,
  pairs: number,
): Promise<Violation[]> {
  const found: Violation[] = [];
  const logs = [...Map.groupBy(notes, ({ origin }) => origin).values()].filter(({ length }) => length > 1);
  for (let pair = 0; pair < pairs && logs.length > 0; pair++) {
    const bySize = random.pick(logs).toSorted((one, other) => one.size - other.size);
    const at = random.between(1, bySize.length - 1);
    const [old, newer] = [bySize[at - 1], bySize[at]];
    if (old === undefined || newer === undefined) continue;
    const hashes = await checkpoints.consistency(newer.log, old.size, newer.size, unboundedWalk());
    const claim = { oldSize: old.size, oldRoot: old.root, newSize: newer.size, newRoot: newer.root, hashes };
    if (!isConsistent(claim)) found.push(`proof: ${nameOf(old)} and ${nameOf(newer)} are not proven to be consistent`);
  }
  return found;
}

function leavesOf({ kind, id, ledgerId }: Log, era: Era): Uint8Array[] {
  const events = era.get(ledgerId) ?? [];
  return kind === 'ledger'
    ? events.map(({ hash }) => leafHash(Buffer.from(hash, 'hex')))
    : events.filter(({ master }) => master?.id === id).map(({ contentHash }) => leafHash(Buffer.from(contentHash, 'hex')));
}

/** The roots of a tree at these of its sizes. */
function rootsAt(leaves: readonly Uint8Array[], sizes: ReadonlySet<number>): ReadonlyMap<number, Buffer> {
  const range = new CompactRange();
  const roots = new Map<number, Buffer>();
  for (const leaf of leaves) {
    range.append(leaf);
    if (sizes.has(range.size)) roots.set(range.size, Buffer.from(range.root()));
  }
  return roots;
}

function nameOf({ origin, size, node }: Note): string {
  return `${origin} at size ${size} of ${node}`;
}
