import { beforeEach, describe, expect, test } from 'vitest';
import { eventHash } from '../../../../src/domain/event/content.ts';
import { formatRow } from '../../../../src/domain/event/row.ts';
import { verifyProofFile } from '../../../../src/domain/log/proof-file.ts';
import type { ProvenLogs } from '../../../../src/service/proofs/proven-logs.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { delegate, masterId, stranger, supplier } from '../../../support/commands.ts';
import { MemoryProvenLogs } from '../../../support/memory-proven-logs.ts';
import {
  beyond,
  bytesOf,
  events,
  expired,
  foreign,
  head,
  keys,
  ledgerOrigin,
  ofMaster,
  ofSibling,
  own,
  ownPlace,
  type ProofMethods,
  proofMethods,
  proofsOver,
  seqOf,
  unavailable,
  wordsOf,
} from '../../../support/proof-methods.ts';
import { codeOf, storeWith } from '../../../support/world.ts';

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

let methods: ProofMethods;

beforeEach(async () => {
  methods = await proofMethods();
});

describe('a delegate of one master', () => {
  test('is refused the checkpoint and consistency of the ledger, and inclusion without a size', async () => {
    for (const size of [undefined, 1n, BigInt(head), BigInt(head + 1)]) {
      const [inSize, toSize] = size === undefined ? [{}, {}] : [{ size }, { to: size }];
      expect(await codeOf(methods.proofs.ledgerCheckpoint(delegate, inSize))).toBe('permission_denied');
      expect(await codeOf(methods.proofs.ledgerConsistency(delegate, { from: 1n, ...toSize }))).toBe(
        'permission_denied',
      );
    }
    for (const name of [{ seq: seqOf(own) }, { seq: BigInt(head) }, { eventId: own.id }, { eventId: beyond.id }])
      expect(await codeOf(methods.proofs.ledgerInclusion(delegate, name))).toBe('permission_denied');
    expect(methods.looks.filter((look) => look !== 'cell' && look !== 'lines')).toEqual([]);
  });

  test('is refused each other size than that of the own place, without a look at the events', async () => {
    for (const seq of [0, own.seq, foreign.seq, head - 1, head, head + 1])
      for (const size of [1, 2, seq, seq + 2, head, head + 1].filter((one) => one > 0 && one !== seq + 1)) {
        const answer = methods.proofs.ledgerInclusion(delegate, { seq: BigInt(seq), size: BigInt(size) });
        expect([seq, size, await codeOf(answer)]).toEqual([seq, size, 'permission_denied']);
      }
    expect(methods.looks.filter((look) => look !== 'cell' && look !== 'lines')).toEqual([]);
  });

  test('gets one and the same not_found for events of siblings, beyond the head and of unknown ids', async () => {
    const unknown = { code: 'not_found', message: 'There is no such event, or you may not see it.', details: {} };
    const names = [
      ...ofSibling.map(({ seq }) => ({ seq })),
      ...[head, head + 1, 2 ** 53 - 2].map((seq) => ({ seq })),
    ].map(({ seq }) => ({ seq: BigInt(seq), size: BigInt(seq + 1) }));
    for (const name of names) expect(await wordsOf(methods.proofs.ledgerInclusion(delegate, name))).toEqual(unknown);
    for (const { id, seq } of [...ofSibling, beyond])
      for (const size of [1, seq, seq + 1, head + 1])
        expect(await wordsOf(methods.proofs.ledgerInclusion(delegate, { eventId: id, size: BigInt(size) }))).toEqual(
          unknown,
        );
  });

  test('gets the proof at the own place of the events of its master and of the ledger itself', async () => {
    const readable = events.filter(({ master }) => master === null || master.id === masterId);
    expect(readable.length).toBe(ofMaster.length + 2);
    for (const event of readable)
      for (const name of [{ seq: seqOf(event) }, { eventId: event.id }]) {
        const answer = await methods.proofs.ledgerInclusion(delegate, { ...name, size: ownPlace(event) });
        const expected = { index: event.seq, record: bytesOf(event.hash), origin: ledgerOrigin, keys };
        expect(verifyProofFile(answer.proof, expected).size).toBe(event.seq + 1);
        expect(eventHash(answer.prevHash, event.contentHash)).toBe(event.hash);
      }
  });

  test('gets not_found for an event that is not certain yet', async () => {
    const uncertain = proofsOver(methods.store, emptyLogs);
    const answer = uncertain.ledgerInclusion(delegate, { seq: seqOf(own), size: ownPlace(own) });
    expect(await wordsOf(answer)).toMatchObject({ code: 'not_found', details: {} });
  });

  test('makes its proofs without the newest size of the ledger', async () => {
    const asked: number[] = [];
    const narrow = proofsOver(methods.store, {
      newestSize: () => Promise.reject(new Error('the newest size was asked for')),
      checkpoint: (log, size) => {
        asked.push(size);
        return methods.logs.checkpoint(log, size);
      },
      inclusion: (log, index, size) => methods.logs.inclusion(log, index, size),
      consistency: () => Promise.reject(new Error('consistency was asked for')),
    });
    await narrow.ledgerInclusion(delegate, { seq: seqOf(own), size: ownPlace(own) });
    expect(asked).toEqual([own.seq + 1]);
  });
});

/** A good call of each method, for a caller who reads the master and nothing else if `partial`. */
const goodCalls: readonly [string, (actor: string) => Promise<unknown>, partial: boolean][] = [
  ['GetLedgerCheckpoint', (actor) => methods.proofs.ledgerCheckpoint(actor), false],
  [
    'GetLedgerInclusion',
    (actor) => methods.proofs.ledgerInclusion(actor, { seq: seqOf(own), size: ownPlace(own) }),
    true,
  ],
  ['GetLedgerConsistency', (actor) => methods.proofs.ledgerConsistency(actor, { from: 1n }), false],
  ['GetMasterCheckpoint', (actor) => methods.proofs.masterCheckpoint(actor), true],
  ['GetMasterInclusion', (actor) => methods.proofs.masterInclusion(actor, { masterSeq: 0n }), true],
  ['GetMasterConsistency', (actor) => methods.proofs.masterConsistency(actor, { from: 1n }), true],
];

describe.each(goodCalls)('%s', (method, call, partial) => {
  test.each(['tree_building', 'broken_row', 'log_behind'])('is unavailable last of all: %s', async (reason) => {
    methods.failure = unavailable(reason);
    expect(await codeOf(call(stranger))).toBe('not_found');
    expect(await codeOf(call(expired))).toBe('access_expired');
    expect(await wordsOf(call(supplier))).toMatchObject({ code: 'unavailable', details: { reason } });
    const code = await codeOf(call(delegate));
    expect(code).toBe(partial ? 'unavailable' : 'permission_denied');
  });

  test('names the seq of a broken row to readers of the whole ledger alone', async () => {
    methods.failure = unavailable('broken_row');
    expect(await wordsOf(call(supplier))).toMatchObject({ details: { seq: foreign.seq } });
    if (partial) expect((await wordsOf(call(delegate))).details).toEqual({ reason: 'broken_row' });
  });

  test('is unavailable for an empty log if it needs the newest size', async () => {
    methods.proofs = proofsOver(methods.store, emptyLogs);
    const { code, message } = await wordsOf(call(supplier));
    if (method === 'GetLedgerInclusion') expect(code).toBe('invalid_argument');
    else
      expect({ code, message }).toEqual({ code: 'unavailable', message: expect.stringContaining('no certain event') });
  });
});

describe('while a log is behind', () => {
  const above = BigInt(head + 1);

  test('the checks before are the same', async () => {
    methods.failure = unavailable('log_behind');
    expect(await codeOf(methods.proofs.ledgerInclusion(supplier, { seq: 1n, size: 1n }))).toBe('invalid_argument');
    expect(await codeOf(methods.proofs.ledgerInclusion(supplier, { eventId: beyond.id }))).toBe('not_found');
    expect(await codeOf(methods.proofs.ledgerInclusion(delegate, { seq: seqOf(own), size: above }))).toBe(
      'permission_denied',
    );
    const sibling = { seq: seqOf(foreign), size: ownPlace(foreign) };
    expect(await codeOf(methods.proofs.ledgerInclusion(delegate, sibling))).toBe('not_found');
    expect(await codeOf(methods.proofs.ledgerInclusion(delegate, { seq: BigInt(head), size: above }))).toBe(
      'not_found',
    );
  });

  test('its head is unknown, so that sizes above the stored one are unavailable too', async () => {
    methods.failure = unavailable('log_behind');
    const refused = [
      methods.proofs.ledgerCheckpoint(supplier, { size: above }),
      methods.proofs.ledgerInclusion(supplier, { seq: 0n, size: above }),
      methods.proofs.ledgerInclusion(supplier, { seq: BigInt(head) }),
      methods.proofs.ledgerConsistency(supplier, { from: above }),
      methods.proofs.ledgerConsistency(supplier, { from: 1n, to: above }),
    ];
    expect(new Set(await Promise.all(refused.map(codeOf)))).toEqual(new Set(['unavailable']));
  });
});

describe('an event that is not stored as it was written', () => {
  test('makes the proofs that need it unavailable', async () => {
    const broken = withRow(methods.store, foreign.seq, withOtherPayload);
    methods.proofs = proofsOver(broken, new MemoryProvenLogs(broken));
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
      methods.proofs = proofsOver(
        withRow(methods.store, own.seq, () => row),
        methods.logs,
      );
      const call = { seq: seqOf(own), size: ownPlace(own) };
      const details = { reason: 'broken_row', seq: own.seq };
      expect(await wordsOf(methods.proofs.ledgerInclusion(supplier, call))).toMatchObject({
        code: 'unavailable',
        details,
      });
      // Whether the delegate may read what cannot be read is not known.
      const seen = row === forged ? { code: 'unavailable', details: { reason: 'broken_row' } } : { code: 'not_found' };
      const words = await wordsOf(methods.proofs.ledgerInclusion(delegate, call));
      expect(words).toMatchObject(seen);
      expect(words.message).not.toMatch(/\d/);
    }
  });
});
