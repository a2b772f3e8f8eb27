import type { EventEntry } from '../../src/actors/ledger/commit-listener.ts';
import { LedgerError } from '../../src/domain/errors.ts';
import { type Checkpoint, verifyCheckpoint } from '../../src/domain/log/checkpoint.ts';
import { originOf } from '../../src/domain/log/origin.ts';
import type { Clock } from '../../src/runtime/clock/clock.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { BehindLogs } from '../../src/service/log-identity/behind-logs.ts';
import { CertainHeads } from '../../src/service/proofs/certain-heads.ts';
import { Checkpoints } from '../../src/service/proofs/checkpoints.ts';
import { LogRows } from '../../src/service/proofs/log-rows.ts';
import { LogTrees } from '../../src/service/proofs/log-trees.ts';
import type { Log, ProvenLogs } from '../../src/service/proofs/proven-logs.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import type { SignedHeads } from '../../src/store/signed-heads.ts';
import type { HashPlace, TileStore } from '../../src/store/tile-store.ts';
import { formatHashes } from '../../src/store/tile-value.ts';
import { chainEntries } from './chain-entries.ts';
import { append, createMaster, ledgerId, masterId, openLedger, siblingId } from './commands.ts';
import { vectorKey, vectorSigner } from './log-keys.ts';
import { emptyLedgerData, type MemoryLedgerData } from './memory-store/ledger-data.ts';
import { MemoryLedgerStore } from './memory-store/ledger-store.ts';
import {
  emptyTreeData,
  MemorySignedHeads,
  MemoryTileStore,
  type MemoryTreeData,
  nameOfPlace,
} from './memory-store/trees.ts';
import { Chain, countingBytes, start } from './world.ts';

export const ledgerLog: Log = { kind: 'ledger', id: ledgerId, ledgerId };
export const masterLog: Log = { kind: 'master', id: masterId, ledgerId };

/** What all nodes of a test share. */
export interface ProofData {
  readonly ledgers: MemoryLedgerData;
  readonly trees: MemoryTreeData;
}

export function emptyProofData(): ProofData {
  return { ledgers: emptyLedgerData(), trees: emptyTreeData() };
}

/** Checkpoints over stores, by the key of the vectors. */
export function checkpointsOver(
  store: LedgerStore,
  tiles: TileStore,
  heads: SignedHeads,
  behind: BehindLogs,
  counts = { signed: 0, tiles: 0 },
  clock: Clock = systemClock,
): Checkpoints {
  const rows = new LogRows(store);
  const tilesWritten = (count: number) => {
    counts.tiles += count;
  };
  const checkpointSigned = () => {
    counts.signed += 1;
  };
  return new Checkpoints({
    ...{ store, heads, rows },
    certainHeads: new CertainHeads(store, clock),
    trees: new LogTrees({ tiles, rows, meter: { tilesWritten, buildingFailed: () => {} } }),
    signer: { ...vectorSigner, behind },
    clock,
    meter: { checkpointSigned },
  });
}

/** Checkpoints and proofs of a store, with tiles and signed heads of their own. */
export function provenLogsOver(store: LedgerStore, clock?: Clock): ProvenLogs {
  const [tiles, heads, behind] = [new MemoryTileStore(), new MemorySignedHeads(), new BehindLogs(false)];
  return checkpointsOver(store, tiles, heads, behind, undefined, clock);
}

/** The origin of a log of the service that signs with the key of the vectors. */
export function originIn({ kind, id }: Log): string {
  return originOf({ serviceName: vectorSigner.serviceName, kind, id });
}

/** A node that signs checkpoints over shared data. */
export class ProvingNode {
  readonly store: MemoryLedgerStore;
  readonly heads: SignedHeads;
  readonly checkpoints: Checkpoints;
  readonly behind: BehindLogs;
  readonly walk = unboundedWalk();
  /** Of checkpoints that were signed, and of tiles that were made. */
  readonly counts = { signed: 0, tiles: 0 };

  constructor(
    { ledgers, trees }: ProofData,
    changes: {
      readonly heads?: (heads: SignedHeads) => SignedHeads;
      readonly tiles?: (tiles: TileStore) => TileStore;
      readonly isCopy?: boolean;
      readonly clock?: Clock;
    } = {},
  ) {
    this.store = new MemoryLedgerStore(() => Date.parse(start), ledgers);
    const heads = new MemorySignedHeads(trees);
    this.heads = changes.heads?.(heads) ?? heads;
    this.behind = new BehindLogs(changes.isCopy ?? false);
    const stored = new MemoryTileStore(trees);
    const tiles = changes.tiles?.(stored) ?? stored;
    this.checkpoints = checkpointsOver(this.store, tiles, this.heads, this.behind, this.counts, changes.clock);
  }

  /** The checkpoint of the newest size, verified. */
  async newest(log: Log): Promise<Checkpoint> {
    return this.at(log, await this.checkpoints.newestSize(log, this.walk));
  }

  /** The checkpoint of a size, verified. */
  async at(log: Log, size: number): Promise<Checkpoint> {
    const signed = await this.checkpoints.checkpoint(log, size, this.walk);
    if (signed === null) throw new Error(`there is no checkpoint of size ${size}`);
    return verifyCheckpoint(signed.checkpoint, originIn(log), [vectorKey]);
  }
}

/** Makes nodes over stores that have the first `events` of a chain. */
export function nodesOver(chain: readonly EventEntry[]) {
  return async (events: number, data: ProofData = emptyProofData()): Promise<ProvingNode> => {
    const node = new ProvingNode(data);
    await appendAll(node.store, chain.slice(0, events));
    return node;
  };
}

/** Puts a false hash, whose checksum is right, at a place of the tiles. */
export function damage({ trees }: ProofData, place: HashPlace): void {
  trees.hashes.set(nameOfPlace(place), formatHashes(place, Buffer.alloc(32, 1)));
}

/** The clock of the machine, moved on by `laterMs`. */
export function laterClock(time: { readonly laterMs: number }): Clock {
  return { ...systemClock, now: () => systemClock.now() + time.laterMs };
}

/** The code of the error that refuses the call, and its reason. */
export async function refusal(call: Promise<unknown>): Promise<readonly unknown[]> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof LedgerError)) throw error;
  return [error.code, error.details.reason];
}

/** A ledger with two masters. Every third event is of the second one. From `otherFrom` on it has other events. */
export function longChain(
  events: number,
  random = countingBytes(),
  otherFrom = Number.POSITIVE_INFINITY,
): readonly EventEntry[] {
  const chain = new Chain(random);
  chain.run(openLedger());
  chain.run(createMaster());
  chain.run(createMaster({ masterId: siblingId, businessRef: 'PO-2' }));
  while (chain.events.length < events) {
    const at = chain.events.length;
    chain.run(append({ masterId: at % 3 === 0 ? siblingId : masterId, payload: `{"n":${at < otherFrom ? at : -at}}` }));
  }
  return chainEntries(chain.events);
}

/** Appends entries in batches, and tells the nodes that are given. */
export async function appendAll(
  store: MemoryLedgerStore,
  entries: readonly EventEntry[],
  owners: readonly ProvingNode[] = [],
  batch = 64,
): Promise<void> {
  const claim = await store.claim(ledgerId);
  for (let at = 0; at < entries.length; at += batch) {
    const part = entries.slice(at, at + batch);
    await store.append(claim, part);
    for (const { checkpoints } of owners) checkpoints.committed(ledgerId, part);
  }
}
