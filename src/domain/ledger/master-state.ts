import type { LedgerEvent, MasterLink } from '../event/event.ts';
import { type MasterFacts, masterFacts } from '../event/facts.ts';
import type { FoldedGrant } from '../event/grant.ts';
import { closedByType } from '../event/service-events.ts';
import { byDelegate, granted, revoked } from './ledger-state.ts';

export const masterFoldVersion = 2;

/** What deciding the next event of a master needs to know. */
export interface MasterState {
  readonly facts: MasterFacts;
  readonly closed: boolean;
  readonly masterSeq: number;
  readonly contentHash: string;
  readonly seq: number;
  readonly hash: string;
  /** Grants at master scope, by delegate: in force, or expired and not replaced. */
  readonly grants: ReadonlyMap<string, FoldedGrant>;
}

/** `state` is null before TRACELEDGER_MASTER_CREATED. */
export function applyToMaster(state: MasterState | null, event: LedgerEvent): MasterState {
  const at = { masterSeq: event.master?.seq ?? 0, contentHash: event.contentHash, seq: event.seq, hash: event.hash };
  if (state === null) return { facts: masterFacts(event), closed: false, grants: new Map(), ...at };
  const moved = { ...state, ...at, closed: state.closed || closedByType(event.eventType) === 'master' };
  switch (event.eventType) {
    case 'MASTER_DELEGATION_GRANTED':
      return { ...moved, grants: granted(state.grants, event) };
    case 'MASTER_DELEGATION_REVOKED':
      return { ...moved, grants: revoked(state.grants, event) };
    default:
      return moved;
  }
}

/** `state` is null before the first event. */
export function nextMasterLink(state: MasterState | null, masterId: string): MasterLink {
  if (state === null) return { id: masterId, prevHash: '', seq: 0 };
  return { id: masterId, prevHash: state.contentHash, seq: state.masterSeq + 1 };
}

export function masterStateJson(state: MasterState): string {
  return JSON.stringify({ ...state, grants: [...state.grants.values()] });
}

export function masterStateFrom(json: string): MasterState {
  const state = JSON.parse(json) as Omit<MasterState, 'grants'> & { grants: FoldedGrant[] };
  return { ...state, grants: byDelegate(state.grants) };
}
