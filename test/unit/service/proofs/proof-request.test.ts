import { beforeEach, describe, expect, test } from 'vitest';
import { delegate, stranger, supplier } from '../../../support/commands.ts';
import { expired, own, type ProofMethods, proofMethods, unavailable } from '../../../support/proof-methods.ts';
import { codeOf } from '../../../support/world.ts';

let methods: ProofMethods;

beforeEach(async () => {
  methods = await proofMethods();
});

describe('a malformed request', () => {
  const malformed: readonly [string, (actor: string) => Promise<unknown>][] = [
    ['a checkpoint of size 0', (actor) => methods.proofs.ledgerCheckpoint(actor, { size: 0n })],
    ['a checkpoint of a ledger without a UUID', (actor) => methods.proofs.ledgerCheckpoint(actor, { ledgerId: 'x' })],
    ['inclusion in size 0', (actor) => methods.proofs.ledgerInclusion(actor, { seq: 0n, size: 0n })],
    ['inclusion of both', (actor) => methods.proofs.ledgerInclusion(actor, { seq: 0n, eventId: own.id, size: 1n })],
    ['inclusion of neither', (actor) => methods.proofs.ledgerInclusion(actor, { size: 1n })],
    ['inclusion of a negative seq', (actor) => methods.proofs.ledgerInclusion(actor, { seq: -1n, size: 1n })],
    [
      'inclusion of an event id that is no UUID',
      (actor) => methods.proofs.ledgerInclusion(actor, { eventId: 'x', size: 1n }),
    ],
    ['consistency without from', (actor) => methods.proofs.ledgerConsistency(actor, { to: 2n })],
    ['consistency from 0', (actor) => methods.proofs.ledgerConsistency(actor, { from: 0n, to: 2n })],
    ['consistency to 0', (actor) => methods.proofs.ledgerConsistency(actor, { from: 1n, to: 0n })],
    ['consistency from a larger size', (actor) => methods.proofs.ledgerConsistency(actor, { from: 3n, to: 2n })],
    ['a checkpoint of a master of size 0', (actor) => methods.proofs.masterCheckpoint(actor, { size: 0n })],
    [
      'inclusion in a master of both',
      (actor) => methods.proofs.masterInclusion(actor, { masterSeq: 0n, eventId: own.id }),
    ],
    ['inclusion in a master of neither', (actor) => methods.proofs.masterInclusion(actor, {})],
    ['inclusion in a master of size 0', (actor) => methods.proofs.masterInclusion(actor, { masterSeq: 0n, size: 0n })],
    ['consistency of a master from 0', (actor) => methods.proofs.masterConsistency(actor, { from: 0n })],
    [
      'consistency of a master from a larger size',
      (actor) => methods.proofs.masterConsistency(actor, { from: 2n, to: 1n }),
    ],
  ];

  test.each(malformed)('is refused for everybody without a look at the store: %s', async (_, call) => {
    methods.failure = unavailable('log_behind');
    for (const actor of [supplier, delegate, expired, stranger])
      expect(await codeOf(call(actor))).toBe('invalid_argument');
    expect(methods.looks).toEqual([]);
  });
});
