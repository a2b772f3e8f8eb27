import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { eventHash } from '../../../../src/domain/event/content.ts';
import type { LedgerEvent } from '../../../../src/domain/event/event.ts';
import { formatRow } from '../../../../src/domain/event/row.ts';
import { decodeBase64 } from '../../../../src/domain/keys/base64.ts';
import { verifyCheckpoint } from '../../../../src/domain/log/checkpoint.ts';
import { verifyProofFile } from '../../../../src/domain/log/proof-file.ts';
import { isConsistent } from '../../../../src/domain/log/tree-proof.ts';
import {
  GetLedgerCheckpointRequestSchema,
  GetLedgerConsistencyRequestSchema,
  GetLedgerInclusionRequestSchema,
  GetMasterCheckpointRequestSchema,
  GetMasterConsistencyRequestSchema,
  GetMasterInclusionRequestSchema,
} from '../../../../src/gen/svc/v1/proofs_pb.ts';
import type { Caller } from '../../../../src/service/calls/call.ts';
import { proofService } from '../../../../src/service/proofs/proofs.ts';
import type { ProvenLogs } from '../../../../src/service/proofs/proven-logs.ts';
import { LedgerReading } from '../../../../src/service/reading/ledger-reading.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import {
  append,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openLedger,
  siblingId,
  stranger,
  supplier,
  uuid,
} from '../../../support/commands.ts';
import { storeOf } from '../../../support/event-lists.ts';
import { vectorKey } from '../../../support/log-keys.ts';
import { MemoryProvenLogs } from '../../../support/memory-proven-logs.ts';
import { beforeCalls, chainOf, codeOf, startMs, storeWith } from '../../../support/world.ts';

/** It had a grant of the master that has run out. */
const expired = uuid(0xdd);
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
const { events } = chain;
const head = events.length;
const ofMaster = events.filter(({ master }) => master?.id === masterId);
const ofSibling = events.filter(({ master }) => master?.id === siblingId);
const beyond = { seq: head, id: events[0]?.id.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) ?? '' };
const nowMs = startMs + 1_000;

/** The first that is there. */
function first<T>(items: readonly T[]): T {
  const [item] = items;
  if (item === undefined) throw new Error('there is none');
  return item;
}
const own = ofMaster.at(-1) ?? first(events);
const foreign = ofSibling.at(-1) ?? first(events);

/** Logs without certain events. */
const emptyLogs: ProvenLogs = {
  newestSize: async () => 0,
  checkpoint: async () => null,
  inclusion: () => Promise.reject(new Error('inclusion in an empty log was asked for')),
  consistency: () => Promise.reject(new Error('consistency of an empty log was asked for')),
};

/** A store that gives another row at one seq. */
function withRow(store: LedgerStore, seq: number, change: (row: string) => string): LedgerStore {
  return storeWith(store, {
    read: async (...args) =>
      (await store.read(...args)).map((entry) => (entry.seq === seq ? { seq, row: change(entry.row) } : entry)),
  });
}

const withOtherPayload = (row: string) =>
  row.replace(/\n\{"business_ref|\n\{\}/, (text) => `${text.slice(0, 2)} ${text.slice(2)}`);

let store: LedgerStore;
let looks: string[];
let logs: MemoryProvenLogs;
let failure: LedgerError | null;
let proofs: ReturnType<typeof proofsOver>;

/** The methods as a function of the caller's actor. */
function proofsOver(ledgers: LedgerStore, provenLogs: ProvenLogs) {
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

beforeEach(async () => {
  const plain = await storeOf(chain);
  looks = [];
  const note = (name: string) => () => void looks.push(name);
  store = beforeCalls(plain, {
    head: note('head'),
    read: note('read'),
    readScope: note('readScope'),
    scopeSeqs: note('scopeSeqs'),
    cell: note('cell'),
    lines: note('lines'),
  });
  failure = null;
  logs = new MemoryProvenLogs(plain, () => failure);
  proofs = proofsOver(store, logs);
});

/** All that a caller learns of a refusal. */
const wordsOf = (answer: Promise<unknown>) =>
  answer.then(
    () => expect.unreachable('the call succeeded'),
    ({ code, message, details }: LedgerError) => ({ code, message, details }),
  );

const seqOf = ({ seq }: LedgerEvent) => BigInt(seq);
const ownPlace = ({ seq }: LedgerEvent) => BigInt(seq + 1);
const bytesOf = (hex: string) => Buffer.from(hex, 'hex');
const ledgerOrigin = `ledger.example/v1/ledgers/${ledgerId}`;
const masterOrigin = `ledger.example/v1/masters/${masterId}`;
const keys = [vectorKey];

interface Consistency {
  readonly hashes: readonly string[];
  readonly checkpointFrom: string;
  readonly checkpointTo: string;
}

function isProved({ hashes, checkpointFrom, checkpointTo }: Consistency, origin: string): boolean {
  const [older, newer] = [verifyCheckpoint(checkpointFrom, origin, keys), verifyCheckpoint(checkpointTo, origin, keys)];
  return isConsistent({
    ...{ oldSize: older.size, oldRoot: older.root, newSize: newer.size, newRoot: newer.root },
    hashes: hashes.map((hash) => decodeBase64(hash, 32) ?? Buffer.alloc(0)),
  });
}

describe('a malformed request', () => {
  const malformed: readonly [string, (actor: string) => Promise<unknown>][] = [
    ['a checkpoint of size 0', (actor) => proofs.ledgerCheckpoint(actor, { size: 0n })],
    ['a checkpoint of a ledger without a UUID', (actor) => proofs.ledgerCheckpoint(actor, { ledgerId: 'x' })],
    ['inclusion in size 0', (actor) => proofs.ledgerInclusion(actor, { seq: 0n, size: 0n })],
    ['inclusion of both', (actor) => proofs.ledgerInclusion(actor, { seq: 0n, eventId: own.id, size: 1n })],
    ['inclusion of neither', (actor) => proofs.ledgerInclusion(actor, { size: 1n })],
    ['inclusion of a negative seq', (actor) => proofs.ledgerInclusion(actor, { seq: -1n, size: 1n })],
    ['inclusion of an event id that is no UUID', (actor) => proofs.ledgerInclusion(actor, { eventId: 'x', size: 1n })],
    ['consistency without from', (actor) => proofs.ledgerConsistency(actor, { to: 2n })],
    ['consistency from 0', (actor) => proofs.ledgerConsistency(actor, { from: 0n, to: 2n })],
    ['consistency to 0', (actor) => proofs.ledgerConsistency(actor, { from: 1n, to: 0n })],
    ['consistency from a larger size', (actor) => proofs.ledgerConsistency(actor, { from: 3n, to: 2n })],
    ['a checkpoint of a master of size 0', (actor) => proofs.masterCheckpoint(actor, { size: 0n })],
    ['inclusion in a master of both', (actor) => proofs.masterInclusion(actor, { masterSeq: 0n, eventId: own.id })],
    ['inclusion in a master of neither', (actor) => proofs.masterInclusion(actor, {})],
    ['inclusion in a master of size 0', (actor) => proofs.masterInclusion(actor, { masterSeq: 0n, size: 0n })],
    ['consistency of a master from 0', (actor) => proofs.masterConsistency(actor, { from: 0n })],
    ['consistency of a master from a larger size', (actor) => proofs.masterConsistency(actor, { from: 2n, to: 1n })],
  ];

  test.each(malformed)('is refused for everybody without a look at the store: %s', async (_, call) => {
    failure = unavailable('log_behind');
    for (const actor of [supplier, delegate, expired, stranger])
      expect(await codeOf(call(actor))).toBe('invalid_argument');
    expect(looks).toEqual([]);
  });
});

describe('a reader of the whole ledger', () => {
  test('gets the newest checkpoint, and that of each size', async () => {
    for (const [asked, size] of [[undefined, head], ...events.map(({ seq }) => [seq + 1, seq + 1] as const)] as const) {
      const more = asked === undefined ? {} : { size: BigInt(asked) };
      const answer = await proofs.ledgerCheckpoint(supplier, more);
      const { root } = verifyCheckpoint(answer.checkpoint, ledgerOrigin, keys);
      expect(answer).toMatchObject({ origin: ledgerOrigin, size: BigInt(size) });
      expect(decodeBase64(answer.rootHash, 32)).toEqual(Buffer.from(root));
      expect(answer.checkpoint.split('\n').slice(1, 3)).toEqual([String(size), answer.rootHash]);
    }
  });

  test('gets the proof of each event at its own place and in the newest tree, by seq and by id', async () => {
    for (const event of events)
      for (const size of [undefined, ownPlace(event), BigInt(head)])
        for (const name of [{ seq: seqOf(event) }, { eventId: event.id }]) {
          const answer = await proofs.ledgerInclusion(supplier, size === undefined ? name : { ...name, size });
          const expected = { index: event.seq, record: bytesOf(event.hash), origin: ledgerOrigin, keys };
          expect(verifyProofFile(answer.proof, expected).size).toBe(Number(size ?? head));
          expect(answer).toMatchObject({ origin: ledgerOrigin, index: seqOf(event), size: size ?? BigInt(head) });
          expect(eventHash(answer.prevHash, event.contentHash)).toBe(event.hash);
        }
    expect((await proofs.ledgerInclusion(supplier, { seq: 0n })).prevHash).toBe('');
  });

  test('gets the proof that each size is the beginning of each larger one', async () => {
    for (let from = 1; from <= head; from += 1)
      for (const to of [undefined, ...events.map(({ seq }) => seq + 1).filter((size) => size >= from)]) {
        const sizes = { from: BigInt(from), ...(to === undefined ? {} : { to: BigInt(to) }) };
        const answer = await proofs.ledgerConsistency(supplier, sizes);
        expect(answer).toMatchObject({ origin: ledgerOrigin, from: BigInt(from), to: BigInt(to ?? head) });
        expect(isProved(answer, ledgerOrigin)).toBe(true);
      }
  });

  test('is refused what lies above the head, or outside of the tree', async () => {
    const above = BigInt(head + 1);
    const refused = [
      [proofs.ledgerCheckpoint(supplier, { size: above }), 'size'],
      [proofs.ledgerInclusion(supplier, { seq: 0n, size: above }), 'size'],
      [proofs.ledgerInclusion(supplier, { seq: BigInt(head) }), 'seq'],
      [proofs.ledgerInclusion(supplier, { seq: 2n ** 53n - 1n }), 'seq'],
      [proofs.ledgerInclusion(supplier, { seq: BigInt(head), size: above }), 'size'],
      [proofs.ledgerInclusion(supplier, { seq: 2n, size: 2n }), 'seq'],
      [proofs.ledgerInclusion(supplier, { eventId: own.id, size: seqOf(own) }), 'event_id'],
      [proofs.ledgerConsistency(supplier, { from: above }), 'from'],
      [proofs.ledgerConsistency(supplier, { from: 1n, to: above }), 'to'],
      [proofs.ledgerConsistency(supplier, { from: above, to: above }), 'to'],
    ] as const;
    const found = await Promise.all(refused.map(([answer]) => wordsOf(answer)));
    expect(found).toMatchObject(refused.map(([, field]) => ({ code: 'invalid_argument', details: { field } })));
  });

  test('gets not_found for an unknown event and for an unknown ledger', async () => {
    expect(await codeOf(proofs.ledgerInclusion(supplier, { eventId: beyond.id }))).toBe('not_found');
    // Before the size is looked at.
    const above = { eventId: beyond.id, size: BigInt(head + 1) };
    expect(await codeOf(proofs.ledgerInclusion(supplier, above))).toBe('not_found');
    expect(await codeOf(proofs.ledgerCheckpoint(supplier, { ledgerId: stranger }))).toBe('not_found');
    expect(await codeOf(proofs.masterCheckpoint(supplier, { uuid: stranger }))).toBe('not_found');
  });
});

describe('a delegate of one master', () => {
  test('is refused the checkpoint and consistency of the ledger, and inclusion without a size', async () => {
    for (const size of [undefined, 1n, BigInt(head), BigInt(head + 1)]) {
      const [inSize, toSize] = size === undefined ? [{}, {}] : [{ size }, { to: size }];
      expect(await codeOf(proofs.ledgerCheckpoint(delegate, inSize))).toBe('permission_denied');
      expect(await codeOf(proofs.ledgerConsistency(delegate, { from: 1n, ...toSize }))).toBe('permission_denied');
    }
    for (const name of [{ seq: seqOf(own) }, { seq: BigInt(head) }, { eventId: own.id }, { eventId: beyond.id }])
      expect(await codeOf(proofs.ledgerInclusion(delegate, name))).toBe('permission_denied');
    expect(looks.filter((look) => look !== 'cell' && look !== 'lines')).toEqual([]);
  });

  test('is refused each other size than that of the own place, without a look at the events', async () => {
    for (const seq of [0, own.seq, foreign.seq, head - 1, head, head + 1])
      for (const size of [1, 2, seq, seq + 2, head, head + 1].filter((one) => one > 0 && one !== seq + 1)) {
        const answer = proofs.ledgerInclusion(delegate, { seq: BigInt(seq), size: BigInt(size) });
        expect([seq, size, await codeOf(answer)]).toEqual([seq, size, 'permission_denied']);
      }
    expect(looks.filter((look) => look !== 'cell' && look !== 'lines')).toEqual([]);
  });

  test('gets one and the same not_found for events of siblings, beyond the head and of unknown ids', async () => {
    const unknown = { code: 'not_found', message: 'There is no such event, or you may not see it.', details: {} };
    const names = [
      ...ofSibling.map(({ seq }) => ({ seq })),
      ...[head, head + 1, 2 ** 53 - 2].map((seq) => ({ seq })),
    ].map(({ seq }) => ({ seq: BigInt(seq), size: BigInt(seq + 1) }));
    for (const name of names) expect(await wordsOf(proofs.ledgerInclusion(delegate, name))).toEqual(unknown);
    for (const { id, seq } of [...ofSibling, beyond])
      for (const size of [1, seq, seq + 1, head + 1])
        expect(await wordsOf(proofs.ledgerInclusion(delegate, { eventId: id, size: BigInt(size) }))).toEqual(unknown);
  });

  test('is refused the id of an event that it reads with each size but that of the own place', async () => {
    for (const size of [1, own.seq, own.seq + 2, head, head + 1].filter((one) => one !== own.seq + 1))
      expect(await codeOf(proofs.ledgerInclusion(delegate, { eventId: own.id, size: BigInt(size) }))).toBe(
        'permission_denied',
      );
  });

  test('gets the proof at the own place of the events of its master and of the ledger itself', async () => {
    const readable = events.filter(({ master }) => master === null || master.id === masterId);
    expect(readable.length).toBe(ofMaster.length + 2);
    for (const event of readable)
      for (const name of [{ seq: seqOf(event) }, { eventId: event.id }]) {
        const answer = await proofs.ledgerInclusion(delegate, { ...name, size: ownPlace(event) });
        const expected = { index: event.seq, record: bytesOf(event.hash), origin: ledgerOrigin, keys };
        expect(verifyProofFile(answer.proof, expected).size).toBe(event.seq + 1);
        expect(eventHash(answer.prevHash, event.contentHash)).toBe(event.hash);
      }
  });

  test('gets not_found for an event that is not certain yet', async () => {
    const uncertain = proofsOver(store, emptyLogs);
    const answer = uncertain.ledgerInclusion(delegate, { seq: seqOf(own), size: ownPlace(own) });
    expect(await wordsOf(answer)).toMatchObject({ code: 'not_found', details: {} });
  });

  test('makes its proofs without the newest size of the ledger', async () => {
    const asked: number[] = [];
    const narrow = proofsOver(store, {
      newestSize: () => Promise.reject(new Error('the newest size was asked for')),
      checkpoint: (log, size) => {
        asked.push(size);
        return logs.checkpoint(log, size);
      },
      inclusion: (log, index, size) => logs.inclusion(log, index, size),
      consistency: () => Promise.reject(new Error('consistency was asked for')),
    });
    await narrow.ledgerInclusion(delegate, { seq: seqOf(own), size: ownPlace(own) });
    expect(asked).toEqual([own.seq + 1]);
  });
});

describe('a reader of a master', () => {
  test.each([
    ['a party', supplier],
    ['a delegate of the master', delegate],
  ])('gets all proofs of the master: %s', async (_, actor) => {
    const count = ofMaster.length;
    for (const size of [undefined, ...ofMaster.map((_event, at) => at + 1)]) {
      const more = size === undefined ? {} : { size: BigInt(size) };
      const answer = await proofs.masterCheckpoint(actor, more);
      expect(verifyCheckpoint(answer.checkpoint, masterOrigin, keys).size).toBe(size ?? count);
      expect(answer).toMatchObject({ origin: masterOrigin, size: BigInt(size ?? count) });
    }
    for (const [at, event] of ofMaster.entries())
      for (const name of [{ masterSeq: BigInt(at) }, { eventId: event.id }])
        for (const size of [undefined, at + 1, count]) {
          const more = size === undefined ? {} : { size: BigInt(size) };
          const { proof, ...answer } = await proofs.masterInclusion(actor, { ...name, ...more });
          const expected = { index: at, record: bytesOf(event.contentHash), origin: masterOrigin, keys };
          expect(verifyProofFile(proof, expected).size).toBe(size ?? count);
          expect(answer).toEqual({ origin: masterOrigin, index: BigInt(at), size: BigInt(size ?? count) });
        }
    for (let from = 1; from <= count; from += 1)
      for (const to of [undefined, count]) {
        const sizes = { from: BigInt(from), ...(to === undefined ? {} : { to: BigInt(to) }) };
        const answer = await proofs.masterConsistency(actor, sizes);
        expect(answer).toMatchObject({ from: BigInt(from), to: BigInt(count) });
        expect(isProved(answer, masterOrigin)).toBe(true);
      }
  });

  test('is refused sizes above the head of the master, and an index outside of the tree', async () => {
    const above = BigInt(ofMaster.length + 1);
    for (const actor of [supplier, delegate]) {
      const refused = [
        proofs.masterCheckpoint(actor, { size: above }),
        proofs.masterInclusion(actor, { masterSeq: 0n, size: above }),
        proofs.masterInclusion(actor, { masterSeq: above - 1n }),
        proofs.masterInclusion(actor, { masterSeq: 1n, size: 1n }),
        proofs.masterInclusion(actor, { eventId: ofMaster[1]?.id ?? '', size: 1n }),
        proofs.masterConsistency(actor, { from: above }),
        proofs.masterConsistency(actor, { from: 1n, to: above }),
      ];
      expect(new Set(await Promise.all(refused.map(codeOf)))).toEqual(new Set(['invalid_argument']));
    }
  });

  test('gets not_found for events of a sibling, of the ledger and of unknown ids', async () => {
    for (const actor of [supplier, delegate])
      for (const { id } of [foreign, first(events), beyond])
        expect(await codeOf(proofs.masterInclusion(actor, { eventId: id }))).toBe('not_found');
  });
});

/** A good call of each method, for a caller who reads the master and nothing else if `partial`. */
const goodCalls: readonly [string, (actor: string) => Promise<unknown>, partial: boolean][] = [
  ['GetLedgerCheckpoint', (actor) => proofs.ledgerCheckpoint(actor), false],
  ['GetLedgerInclusion', (actor) => proofs.ledgerInclusion(actor, { seq: seqOf(own), size: ownPlace(own) }), true],
  ['GetLedgerConsistency', (actor) => proofs.ledgerConsistency(actor, { from: 1n }), false],
  ['GetMasterCheckpoint', (actor) => proofs.masterCheckpoint(actor), true],
  ['GetMasterInclusion', (actor) => proofs.masterInclusion(actor, { masterSeq: 0n }), true],
  ['GetMasterConsistency', (actor) => proofs.masterConsistency(actor, { from: 1n }), true],
];

function unavailable(reason: string): LedgerError {
  return new LedgerError('unavailable', 'No proof can be made.', { reason, seq: foreign.seq });
}

describe.each(goodCalls)('%s', (method, call, partial) => {
  test.each(['tree_building', 'broken_row', 'log_behind'])('is unavailable last of all: %s', async (reason) => {
    failure = unavailable(reason);
    expect(await codeOf(call(stranger))).toBe('not_found');
    expect(await codeOf(call(expired))).toBe('access_expired');
    expect(await wordsOf(call(supplier))).toMatchObject({ code: 'unavailable', details: { reason } });
    const code = await codeOf(call(delegate));
    expect(code).toBe(partial ? 'unavailable' : 'permission_denied');
  });

  test('names the seq of a broken row to readers of the whole ledger alone', async () => {
    failure = unavailable('broken_row');
    expect(await wordsOf(call(supplier))).toMatchObject({ details: { seq: foreign.seq } });
    if (partial) expect((await wordsOf(call(delegate))).details).toEqual({ reason: 'broken_row' });
  });

  test('is unavailable for an empty log if it needs the newest size', async () => {
    proofs = proofsOver(store, emptyLogs);
    const { code, message } = await wordsOf(call(supplier));
    if (method === 'GetLedgerInclusion') expect(code).toBe('invalid_argument');
    else
      expect({ code, message }).toEqual({ code: 'unavailable', message: expect.stringContaining('no certain event') });
  });
});

describe('while a log is behind', () => {
  const above = BigInt(head + 1);

  test('the checks before are the same', async () => {
    failure = unavailable('log_behind');
    expect(await codeOf(proofs.ledgerInclusion(supplier, { seq: 1n, size: 1n }))).toBe('invalid_argument');
    expect(await codeOf(proofs.ledgerInclusion(supplier, { eventId: beyond.id }))).toBe('not_found');
    expect(await codeOf(proofs.ledgerInclusion(delegate, { seq: seqOf(own), size: above }))).toBe('permission_denied');
    const sibling = { seq: seqOf(foreign), size: ownPlace(foreign) };
    expect(await codeOf(proofs.ledgerInclusion(delegate, sibling))).toBe('not_found');
    expect(await codeOf(proofs.ledgerInclusion(delegate, { seq: BigInt(head), size: above }))).toBe('not_found');
  });

  test('its head is unknown, so that sizes above the stored one are unavailable too', async () => {
    failure = unavailable('log_behind');
    const refused = [
      proofs.ledgerCheckpoint(supplier, { size: above }),
      proofs.ledgerInclusion(supplier, { seq: 0n, size: above }),
      proofs.ledgerInclusion(supplier, { seq: BigInt(head) }),
      proofs.ledgerConsistency(supplier, { from: above }),
      proofs.ledgerConsistency(supplier, { from: 1n, to: above }),
    ];
    expect(new Set(await Promise.all(refused.map(codeOf)))).toEqual(new Set(['unavailable']));
  });
});

describe('an event that is not stored as it was written', () => {
  test('makes the proofs that need it unavailable', async () => {
    const broken = withRow(store, foreign.seq, withOtherPayload);
    proofs = proofsOver(broken, new MemoryProvenLogs(broken));
    for (const [name, call, partial] of goodCalls) {
      const details = { reason: 'broken_row', seq: foreign.seq };
      expect([name, await wordsOf(call(supplier))]).toMatchObject([name, { code: 'unavailable', details }]);
      const seen = partial ? { code: 'unavailable', details: { reason: 'broken_row' } } : { code: 'permission_denied' };
      const words = await wordsOf(call(delegate));
      expect([name, words]).toMatchObject([name, seen]);
      if (partial) expect(words.message).not.toMatch(/\d/);
    }
  });

  test('gives no prev_hash, even where the tree needs no row', async () => {
    const forged = formatRow({ ...own, prevHash: 'ab'.repeat(32) });
    for (const row of [forged, 'no event', formatRow(own).replace(/.$/, '')]) {
      proofs = proofsOver(
        withRow(store, own.seq, () => row),
        logs,
      );
      const call = { seq: seqOf(own), size: ownPlace(own) };
      const details = { reason: 'broken_row', seq: own.seq };
      expect(await wordsOf(proofs.ledgerInclusion(supplier, call))).toMatchObject({ code: 'unavailable', details });
      // Whether the delegate may read what cannot be read is not known.
      const seen = row === forged ? { code: 'unavailable', details: { reason: 'broken_row' } } : { code: 'not_found' };
      const words = await wordsOf(proofs.ledgerInclusion(delegate, call));
      expect(words).toMatchObject(seen);
      expect(words.message).not.toMatch(/\d/);
    }
  });
});
