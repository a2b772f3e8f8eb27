import { beforeEach, describe, expect, test } from 'vitest';
import { eventHash } from '../../../../src/domain/event/content.ts';
import { decodeBase64 } from '../../../../src/domain/keys/base64.ts';
import { verifyCheckpoint } from '../../../../src/domain/log/checkpoint.ts';
import { verifyProofFile } from '../../../../src/domain/log/proof-file.ts';
import { isConsistent } from '../../../../src/domain/log/tree-proof.ts';
import { delegate, stranger, supplier } from '../../../support/commands.ts';
import {
  beyond,
  bytesOf,
  events,
  first,
  foreign,
  head,
  keys,
  ledgerOrigin,
  masterOrigin,
  ofMaster,
  own,
  ownPlace,
  type ProofMethods,
  proofMethods,
  seqOf,
  wordsOf,
} from '../../../support/proof-methods.ts';
import { codeOf } from '../../../support/world.ts';

let methods: ProofMethods;

beforeEach(async () => {
  methods = await proofMethods();
});

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

describe('a reader of the whole ledger', () => {
  test('gets the newest checkpoint, and that of each size', async () => {
    for (const [asked, size] of [[undefined, head], ...events.map(({ seq }) => [seq + 1, seq + 1] as const)] as const) {
      const more = asked === undefined ? {} : { size: BigInt(asked) };
      const answer = await methods.proofs.ledgerCheckpoint(supplier, more);
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
          const answer = await methods.proofs.ledgerInclusion(supplier, size === undefined ? name : { ...name, size });
          const expected = { index: event.seq, record: bytesOf(event.hash), origin: ledgerOrigin, keys };
          expect(verifyProofFile(answer.proof, expected).size).toBe(Number(size ?? head));
          expect(answer).toMatchObject({ origin: ledgerOrigin, index: seqOf(event), size: size ?? BigInt(head) });
          expect(eventHash(answer.prevHash, event.contentHash)).toBe(event.hash);
        }
    expect((await methods.proofs.ledgerInclusion(supplier, { seq: 0n })).prevHash).toBe('');
  });

  test('gets the proof that each size is the beginning of each larger one', async () => {
    for (let from = 1; from <= head; from += 1)
      for (const to of [undefined, ...events.map(({ seq }) => seq + 1).filter((size) => size >= from)]) {
        const sizes = { from: BigInt(from), ...(to === undefined ? {} : { to: BigInt(to) }) };
        const answer = await methods.proofs.ledgerConsistency(supplier, sizes);
        expect(answer).toMatchObject({ origin: ledgerOrigin, from: BigInt(from), to: BigInt(to ?? head) });
        expect(isProved(answer, ledgerOrigin)).toBe(true);
      }
  });

  test('is refused what lies above the head, or outside of the tree', async () => {
    const above = BigInt(head + 1);
    const refused = [
      [methods.proofs.ledgerCheckpoint(supplier, { size: above }), 'size'],
      [methods.proofs.ledgerInclusion(supplier, { seq: 0n, size: above }), 'size'],
      [methods.proofs.ledgerInclusion(supplier, { seq: BigInt(head) }), 'seq'],
      [methods.proofs.ledgerInclusion(supplier, { seq: 2n ** 53n - 1n }), 'seq'],
      [methods.proofs.ledgerInclusion(supplier, { seq: BigInt(head), size: above }), 'size'],
      [methods.proofs.ledgerInclusion(supplier, { seq: 2n, size: 2n }), 'seq'],
      [methods.proofs.ledgerInclusion(supplier, { eventId: own.id, size: seqOf(own) }), 'event_id'],
      [methods.proofs.ledgerConsistency(supplier, { from: above }), 'from'],
      [methods.proofs.ledgerConsistency(supplier, { from: 1n, to: above }), 'to'],
      [methods.proofs.ledgerConsistency(supplier, { from: above, to: above }), 'to'],
    ] as const;
    const found = await Promise.all(refused.map(([answer]) => wordsOf(answer)));
    expect(found).toMatchObject(refused.map(([, field]) => ({ code: 'invalid_argument', details: { field } })));
  });

  test('gets not_found for an unknown event and for an unknown ledger', async () => {
    expect(await codeOf(methods.proofs.ledgerInclusion(supplier, { eventId: beyond.id }))).toBe('not_found');
    // Before the size is looked at.
    const above = { eventId: beyond.id, size: BigInt(head + 1) };
    expect(await codeOf(methods.proofs.ledgerInclusion(supplier, above))).toBe('not_found');
    expect(await codeOf(methods.proofs.ledgerCheckpoint(supplier, { ledgerId: stranger }))).toBe('not_found');
    expect(await codeOf(methods.proofs.masterCheckpoint(supplier, { uuid: stranger }))).toBe('not_found');
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
      const answer = await methods.proofs.masterCheckpoint(actor, more);
      expect(verifyCheckpoint(answer.checkpoint, masterOrigin, keys).size).toBe(size ?? count);
      expect(answer).toMatchObject({ origin: masterOrigin, size: BigInt(size ?? count) });
    }
    for (const [at, event] of ofMaster.entries())
      for (const name of [{ masterSeq: BigInt(at) }, { eventId: event.id }])
        for (const size of [undefined, at + 1, count]) {
          const more = size === undefined ? {} : { size: BigInt(size) };
          const { proof, ...answer } = await methods.proofs.masterInclusion(actor, { ...name, ...more });
          const expected = { index: at, record: bytesOf(event.contentHash), origin: masterOrigin, keys };
          expect(verifyProofFile(proof, expected).size).toBe(size ?? count);
          expect(answer).toEqual({ origin: masterOrigin, index: BigInt(at), size: BigInt(size ?? count) });
        }
    for (let from = 1; from <= count; from += 1)
      for (const to of [undefined, count]) {
        const sizes = { from: BigInt(from), ...(to === undefined ? {} : { to: BigInt(to) }) };
        const answer = await methods.proofs.masterConsistency(actor, sizes);
        expect(answer).toMatchObject({ from: BigInt(from), to: BigInt(count) });
        expect(isProved(answer, masterOrigin)).toBe(true);
      }
  });

  test('is refused sizes above the head of the master, and an index outside of the tree', async () => {
    const above = BigInt(ofMaster.length + 1);
    for (const actor of [supplier, delegate]) {
      const refused = [
        methods.proofs.masterCheckpoint(actor, { size: above }),
        methods.proofs.masterInclusion(actor, { masterSeq: 0n, size: above }),
        methods.proofs.masterInclusion(actor, { masterSeq: above - 1n }),
        methods.proofs.masterInclusion(actor, { masterSeq: 1n, size: 1n }),
        methods.proofs.masterInclusion(actor, { eventId: ofMaster[1]?.id ?? '', size: 1n }),
        methods.proofs.masterConsistency(actor, { from: above }),
        methods.proofs.masterConsistency(actor, { from: 1n, to: above }),
      ];
      expect(new Set(await Promise.all(refused.map(codeOf)))).toEqual(new Set(['invalid_argument']));
    }
  });

  test('gets not_found for events of a sibling, of the ledger and of unknown ids', async () => {
    for (const actor of [supplier, delegate])
      for (const { id } of [foreign, first(events), beyond])
        expect(await codeOf(methods.proofs.masterInclusion(actor, { eventId: id }))).toBe('not_found');
  });
});
