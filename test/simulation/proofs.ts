import { createHash } from 'node:crypto';
import { combineListeners, type EventEntry } from '../../src/actors/ledger/commit-listener.ts';
import type { LedgerActorParts } from '../../src/actors/ledger/ledger-actor.ts';
import { parseRow } from '../../src/domain/event/row.ts';
import { TILE_HASHES } from '../../src/domain/log/tiles.ts';
import { HASH_BYTES, leafHash } from '../../src/domain/log/tree.ts';
import type { Clock } from '../../src/runtime/clock/clock.ts';
import { CertainHeads } from '../../src/service/proofs/certain-heads.ts';
import { Checkpoints } from '../../src/service/proofs/checkpoints.ts';
import { type LeafRange, LogRows } from '../../src/service/proofs/log-rows.ts';
import { LogTrees, type NamedLog } from '../../src/service/proofs/log-trees.ts';
import type { Log } from '../../src/service/proofs/proven-logs.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { CqlSession } from '../../src/store/cassandra/session/session.ts';
import { CassandraSignedHeads } from '../../src/store/cassandra/trees/signed-heads.ts';
import { CassandraTileStore } from '../../src/store/cassandra/trees/tile-store.ts';
import { forwardingLedgers } from '../../src/store/forwarding.ts';
import type { LedgerStore, StoredEntry } from '../../src/store/ledger-store.ts';
import type { SignedHeads } from '../../src/store/signed-heads.ts';
import type { PlantedBug } from './bugs.ts';

/** What the nodes of a run sign with, and what they report of their logs. */
export interface LogsOfRun {
  /** Changes with a new origin. */
  serviceName: string;
  /** The store is a restored copy, and is marked as one. */
  isCopy: boolean;
  /** Origins of logs that a node found to be behind. */
  readonly behind: Set<string>;
  /** Origins of logs whose tiles did not agree with what was signed. */
  readonly remade: Set<string>;
}

export function newLogsOfRun(): LogsOfRun {
  return { serviceName: 'sim.example/v1', isCopy: false, behind: new Set(), remade: new Set() };
}

/** A replica serves damaged rows: those whose seq has this remainder. `met` is called when one is read. */
export interface DamagedRows {
  readonly remainder: number;
  readonly met: () => void;
}

/** One row in so many is damaged. */
export const damagedEvery = 8;

interface ProofsParts {
  readonly store: LedgerStore;
  readonly session: CqlSession;
  readonly clock: Clock;
  readonly logs: LogsOfRun;
  readonly counts: { tiles: number };
  readonly bug: PlantedBug | null;
  /** null: the node reads no damaged row now. */
  readonly damaged: () => DamagedRows | null;
}

/** The checkpoints of a node as src/node/subsystems/proofs.ts wires them, with the mistake that is planted. */
export function simulatedCheckpoints({ store, session, clock, logs, counts, bug, damaged }: ProofsParts): Checkpoints {
  const read = { ...forwardingLedgers(store), ...damagedReads(store, damaged) };
  const rows = new LogRows(read);
  const treeRows = bug === 'tile_of_unchecked_rows' ? uncheckedTileRows(rows, read) : rows;
  const certain =
    bug === 'head_made_certain_by_claim'
      ? { certainHead: async (ledgerId: string) => (await store.claim(ledgerId)).head }
      : read;
  return new Checkpoints({
    store: read,
    heads: headsWith(bug, new CassandraSignedHeads(session)),
    certainHeads: new CertainHeads(certain, clock),
    rows,
    trees: new WatchedTrees(
      {
        tiles: new CassandraTileStore(session),
        rows: treeRows,
        meter: {
          tilesWritten: (count) => {
            counts.tiles += count;
          },
          buildingFailed: () => {},
        },
      },
      logs,
    ),
    signer: {
      ...quickSigner,
      serviceName: logs.serviceName,
      behind: {
        store: logs.isCopy && bug !== 'restored_copy_unmarked',
        has: (_kind, origin) => logs.behind.has(origin),
        learn: (_kind, origin, isBehind) => {
          if (isBehind) logs.behind.add(origin);
        },
      },
    },
    clock,
    meter: { checkpointSigned: () => {} },
  });
}

/** What the actors of a node tell its checkpoints, and the store that they append to. */
export function fedBy(
  bug: PlantedBug | null,
  checkpoints: Checkpoints,
  store: LedgerStore,
): Pick<LedgerActorParts, 'commitListener' | 'store'> {
  if (bug !== 'edge_fed_when_sent') return { commitListener: combineListeners(checkpoints), store };
  const append: LedgerStore['append'] = (claim, entries) => {
    checkpoints.committed(claim.ledgerId, entries as readonly EventEntry[]);
    return store.append(claim, entries);
  };
  return { store: { ...forwardingLedgers(store), append } };
}

/** Learns of trees that did not agree with what was signed. */
class WatchedTrees extends LogTrees {
  readonly #logs: LogsOfRun;

  constructor(parts: ConstructorParameters<typeof LogTrees>[0], logs: LogsOfRun) {
    super(parts);
    this.#logs = logs;
  }

  override remake(log: NamedLog, needed: number, certain: number): Promise<void> | null {
    this.#logs.remade.add(log.origin);
    return super.remake(log, needed, certain);
  }
}

/** Signatures are not what is simulated. */
const quickSigner = {
  publicKey: new Uint8Array(HASH_BYTES),
  sign: (message: Uint8Array) => createHash('sha512').update(message).digest(),
};

function headsWith(bug: PlantedBug | null, heads: CassandraSignedHeads): SignedHeads {
  return {
    get: bug === 'signed_head_not_compared' ? async () => null : (origin) => heads.get(origin),
    raise: async (...head) => {
      const raised = heads.raise(...head);
      if (bug === 'signed_before_head_is_durable') raised.catch(() => {});
      else await raised;
    },
  };
}

/** Makes tiles of what the rows say that their hashes are. Other leaves are checked. */
function uncheckedTileRows(rows: LogRows, store: LedgerStore): Pick<LogRows, 'leaves'> {
  return {
    leaves: async (log: Log, range: LeafRange, walk = unboundedWalk()) => {
      if (log.kind !== 'ledger' || range.to - range.from !== TILE_HASHES) return rows.leaves(log, range, walk);
      const entries = await store.read(log.ledgerId, range.from, TILE_HASHES);
      return entries.map(({ row }) => leafHash(Buffer.from(parseRow(row).hash, 'hex')));
    },
  };
}

function damagedReads(store: LedgerStore, damaged: () => DamagedRows | null): Pick<LedgerStore, 'read' | 'readScope'> {
  const damage = (entry: StoredEntry): StoredEntry => {
    const now = damaged();
    if (now === null || entry.seq % damagedEvery !== now.remainder) return entry;
    now.met();
    return { ...entry, row: damagedRow(entry.row) };
  };
  return {
    read: async (...args) => (await store.read(...args)).map(damage),
    readScope: async (...args) => {
      const { entries, missing } = await store.readScope(...args);
      return { entries: entries.map(damage), missing };
    },
  };
}

/** Another hash of the same form, which follows from nothing. */
function damagedRow(row: string): string {
  return row.replace(/"hash":"(.)/, (_, digit: string) => `"hash":"${digit === '0' ? '1' : '0'}`);
}
