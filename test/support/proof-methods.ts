import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { expect } from 'vitest';
import { LedgerError } from '../../src/domain/errors.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import {
  GetLedgerCheckpointRequestSchema,
  GetLedgerConsistencyRequestSchema,
  GetLedgerInclusionRequestSchema,
  GetMasterCheckpointRequestSchema,
  GetMasterConsistencyRequestSchema,
  GetMasterInclusionRequestSchema,
} from '../../src/gen/svc/v1/proofs_pb.ts';
import type { Caller } from '../../src/service/calls/call.ts';
import { proofService } from '../../src/service/proofs/proofs.ts';
import type { ProvenLogs } from '../../src/service/proofs/proven-logs.ts';
import { LedgerReading } from '../../src/service/reading/ledger-reading.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { append, createMaster, grant, ledgerId, masterId, openLedger, siblingId, uuid } from './commands.ts';
import { storeOf } from './event-lists.ts';
import { vectorKey } from './log-keys.ts';
import { MemoryProvenLogs } from './memory-proven-logs.ts';
import { beforeCalls, chainOf, startMs } from './world.ts';

/** It had a grant of the master that has run out. */
export const expired = uuid(0xdd);
const chain = chainOf(
  openLedger(),
  createMaster(),
  createMaster({ masterId: siblingId }),
  append(),
  append({ masterId: siblingId }),
  grant({ access: 'read' }),
  grant({ access: 'read', delegateActorId: expired, expiresAt: '2026-11-21T02:06:39.200Z', linkId: uuid(0xce) }),
  append(),
  append({ masterId: siblingId }),
);
export const { events } = chain;
export const head = events.length;
export const ofMaster = events.filter(({ master }) => master?.id === masterId);
export const ofSibling = events.filter(({ master }) => master?.id === siblingId);
export const beyond = { seq: head, id: events[0]?.id.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) ?? '' };
const nowMs = startMs + 1_000;

/** The first that is there. */
export function first<T>(items: readonly T[]): T {
  const [item] = items;
  if (item === undefined) throw new Error('there is none');
  return item;
}
export const own = ofMaster.at(-1) ?? first(events);
export const foreign = ofSibling.at(-1) ?? first(events);

/** The methods as a function of the caller's actor. */
export function proofsOver(ledgers: LedgerStore, provenLogs: ProvenLogs) {
  const service = proofService(ledgers, new LedgerReading(ledgers, () => nowMs), provenLogs);
  const by = (actorId: string) => {
    const caller: Caller = {
      actorId,
      world: null,
      via: 'api_key',
      apiKeyId: null,
      actorType: 'service',
      mustSign: false,
    };
    return { caller, walk: unboundedWalk() };
  };
  return {
    ledgerCheckpoint: (actor: string, more: MessageInitShape<typeof GetLedgerCheckpointRequestSchema> = {}) =>
      service.getLedgerCheckpoint(create(GetLedgerCheckpointRequestSchema, { ledgerId, ...more }), by(actor)),
    ledgerInclusion: (actor: string, more: MessageInitShape<typeof GetLedgerInclusionRequestSchema>) =>
      service.getLedgerInclusion(create(GetLedgerInclusionRequestSchema, { ledgerId, ...more }), by(actor)),
    ledgerConsistency: (actor: string, more: MessageInitShape<typeof GetLedgerConsistencyRequestSchema>) =>
      service.getLedgerConsistency(create(GetLedgerConsistencyRequestSchema, { ledgerId, ...more }), by(actor)),
    masterCheckpoint: (actor: string, more: MessageInitShape<typeof GetMasterCheckpointRequestSchema> = {}) =>
      service.getMasterCheckpoint(create(GetMasterCheckpointRequestSchema, { uuid: masterId, ...more }), by(actor)),
    masterInclusion: (actor: string, more: MessageInitShape<typeof GetMasterInclusionRequestSchema>) =>
      service.getMasterInclusion(create(GetMasterInclusionRequestSchema, { uuid: masterId, ...more }), by(actor)),
    masterConsistency: (actor: string, more: MessageInitShape<typeof GetMasterConsistencyRequestSchema>) =>
      service.getMasterConsistency(create(GetMasterConsistencyRequestSchema, { uuid: masterId, ...more }), by(actor)),
  };
}

/** The methods over a store that notes its calls. */
export interface ProofMethods {
  readonly store: LedgerStore;
  /** The calls of the store, in order. */
  readonly looks: string[];
  readonly logs: MemoryProvenLogs;
  /** What every proof fails with. null: with nothing. */
  failure: LedgerError | null;
  proofs: ReturnType<typeof proofsOver>;
}

export async function proofMethods(): Promise<ProofMethods> {
  const plain = await storeOf(chain);
  const looks: string[] = [];
  const note = (name: string) => () => void looks.push(name);
  const store = beforeCalls(plain, {
    head: note('head'),
    read: note('read'),
    readScope: note('readScope'),
    scopeSeqs: note('scopeSeqs'),
    cell: note('cell'),
    lines: note('lines'),
  });
  const logs = new MemoryProvenLogs(plain, () => methods.failure);
  const methods: ProofMethods = { store, looks, logs, failure: null, proofs: proofsOver(store, logs) };
  return methods;
}

/** All that a caller learns of a refusal. */
export const wordsOf = (answer: Promise<unknown>) =>
  answer.then(
    () => expect.unreachable('the call succeeded'),
    ({ code, message, details }: LedgerError) => ({ code, message, details }),
  );

export const seqOf = ({ seq }: LedgerEvent) => BigInt(seq);
export const ownPlace = ({ seq }: LedgerEvent) => BigInt(seq + 1);
export const bytesOf = (hex: string) => Buffer.from(hex, 'hex');
export const ledgerOrigin = `ledger.example/v1/ledgers/${ledgerId}`;
export const masterOrigin = `ledger.example/v1/masters/${masterId}`;
export const keys = [vectorKey];

export function unavailable(reason: string): LedgerError {
  return new LedgerError('unavailable', 'No proof can be made.', { reason, seq: foreign.seq });
}
