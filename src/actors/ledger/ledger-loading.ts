import { wrongHash } from '../../domain/event/integrity.ts';
import { CorruptRow, parseRow } from '../../domain/event/row.ts';
import {
  applyToLedger,
  emptyLedger,
  type LedgerState,
  ledgerFoldVersion,
  ledgerStateFrom,
} from '../../domain/ledger/ledger-state.ts';
import type { Head, LedgerStore, Snapshot } from '../../store/ledger-store.ts';
import { pageCharsMax } from '../../store/pages.ts';
import { replayPageEvents } from '../bounds.ts';
import { reloading } from '../inbox/refusals.ts';
import { BrokenChain, checkStored, readStored } from './broken-chain.ts';

interface LoadedLedger {
  readonly state: LedgerState;
  /** -1: there was no snapshot. */
  readonly snapshotSeq: number;
}

/** Throws BrokenChain, and LedgerError `unavailable` if another node has written to the ledger meanwhile. */
export async function loadLedger(store: LedgerStore, ledgerId: string, head: Head | null): Promise<LoadedLedger> {
  let state = await fromSnapshot(store, ledgerId);
  const snapshotSeq = state.seq;
  const headSeq = head?.seq ?? -1;
  // Another node has claimed the ledger, written to it and saved a snapshot: the requested state is outdated.
  if (snapshotSeq > headSeq) throw reloading();
  while (state.seq < headSeq) {
    const count = Math.min(replayPageEvents, headSeq - state.seq);
    const page = await store.read(ledgerId, state.seq + 1, count, pageCharsMax);
    if (page.length === 0) throw new BrokenChain(ledgerId, state.seq + 1, 'events up to the head are missing');
    for (const entry of page) {
      const event = readStored(entry, ledgerId);
      if (event.seq !== state.seq + 1 || event.prevHash !== state.hash)
        throw new BrokenChain(ledgerId, state.seq + 1, 'no event there seals the one before it');
      checkStored(event, ledgerId);
      state = applyToLedger(state, event);
    }
  }
  if (state.hash !== (head?.hash ?? '')) throw new BrokenChain(ledgerId, headSeq, 'the head is not the newest event');
  return { state, snapshotSeq };
}

async function fromSnapshot(store: LedgerStore, ledgerId: string): Promise<LedgerState> {
  const snapshot = await store.snapshot(ledgerId);
  if (snapshot === null || snapshot.foldVersion !== ledgerFoldVersion) return emptyLedger;
  const state = readSnapshot(snapshot, ledgerStateFrom);
  if (state?.facts?.ledgerId !== ledgerId) return emptyLedger;
  return (await isOfLog(store, ledgerId, snapshot)) ? state : emptyLedger;
}

/** null: the snapshot is damaged, or its seq and hash are not those of the state. */
export function readSnapshot<T extends { readonly seq: number; readonly hash: string }>(
  snapshot: Snapshot,
  stateFrom: (json: string) => T,
): T | null {
  try {
    const state = stateFrom(snapshot.state);
    return state.seq === snapshot.seq && state.hash === snapshot.hash ? state : null;
  } catch {
    return null;
  }
}

/** Whether the snapshot was made at the event that the log has at its seq. */
export async function isOfLog(store: LedgerStore, ledgerId: string, snapshot: Snapshot): Promise<boolean> {
  const [entry] = await store.read(ledgerId, snapshot.seq, 1);
  if (entry?.seq !== snapshot.seq) return false;
  try {
    const event = parseRow(entry.row);
    return event.ledgerId === ledgerId && event.hash === snapshot.hash && wrongHash(event) === null;
  } catch (error) {
    if (error instanceof CorruptRow) return false;
    throw error;
  }
}
