import type { LedgerEvent } from '../../../src/domain/event/event.ts';
import { CompactRange } from '../../../src/domain/log/compact-range.ts';
import { leafHash } from '../../../src/domain/log/tree.ts';
import { isConsistent } from '../../../src/domain/log/tree-proof.ts';
import type { Log, ProvenLogs } from '../../../src/service/proofs/proven-logs.ts';
import { unboundedWalk } from '../../../src/service/walking/walk.ts';
import type { Violation } from './history-check.ts';

/** A checkpoint that a client was given. */
export interface Note {
  readonly log: Log;
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
  /** What gave it. */
  readonly node: string;
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
      const fitting = trees.filter((roots) => roots.get(note.size)?.equals(note.root));
      if (fitting.length === 0) return [`root: ${nameOfNote(note)} has a root that no tree of the log has`];
      if (before.size === note.size && !before.root.equals(note.root))
        return [`contradiction: ${nameOfNote(before)} and ${nameOfNote(note)} have different roots`];
      if (!fitting.some((roots) => roots.get(before.size)?.equals(before.root)))
        return [`contradiction: ${nameOfNote(before)} is no beginning of ${nameOfNote(note)}`];
      return [];
    });
  });
}

/** The notes of each log by size, each with the next one. */
export function neighbours(notes: readonly Note[]): (readonly [Note, Note])[] {
  return Array.from(Map.groupBy(notes, ({ origin }) => origin).values()).flatMap((given) => {
    const bySize = given.toSorted((one, other) => one.size - other.size);
    return bySize.flatMap((note, at) => {
      const next = bySize[at + 1];
      return next === undefined ? [] : [[note, next] as const];
    });
  });
}

/** Has pairs of neighbours proven from what is stored. */
export async function checkProofs(pairs: readonly (readonly [Note, Note])[], logs: ProvenLogs): Promise<Violation[]> {
  const found: Violation[] = [];
  for (const [old, newer] of pairs) {
    const hashes = await logs.consistency(newer.log, old.size, newer.size, unboundedWalk());
    const claim = { oldSize: old.size, oldRoot: old.root, newSize: newer.size, newRoot: newer.root, hashes };
    if (!isConsistent(claim))
      found.push(`proof: ${nameOfNote(old)} and ${nameOfNote(newer)} are not proven to be consistent`);
  }
  return found;
}

function leavesOf({ kind, id, ledgerId }: Log, era: Era): Uint8Array[] {
  const events = era.get(ledgerId) ?? [];
  return kind === 'ledger'
    ? events.map(({ hash }) => leafHash(Buffer.from(hash, 'hex')))
    : events
        .filter(({ master }) => master?.id === id)
        .map(({ contentHash }) => leafHash(Buffer.from(contentHash, 'hex')));
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

export function nameOfNote({ origin, size, node }: Note): string {
  return `${origin} at size ${size} of ${node}`;
}
