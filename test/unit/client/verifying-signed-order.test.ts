import { describe, expect, it } from 'vitest';
import { type Event, keysFromDocuments, type VerifyOptions } from '../../../src/client/index.ts';
import { digestOf } from '../../../src/client/signing/signing.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { ed25519Key, signDigest } from '../../../src/domain/keys/key-object.ts';
import { logVectors } from '../../support/log-vectors.ts';
import {
  at,
  chain,
  checkpointOf,
  documentOf,
  ofMasterA,
  relinked,
  resealed,
  verify,
} from '../../support/vector-chain.ts';
import { vectors } from '../../support/vectors.ts';

/** The ledger before it was closed: the last seal is that of event 1, and actors signed the six behind it. */
const open = chain.slice(0, 8);
const found = async (events: readonly Event[], change: Partial<VerifyOptions> = {}) => {
  const { verdict, issues, incomplete } = await verify(events, change);
  return { verdict, issues: issues.map(({ type }) => type), reasons: incomplete.map(({ type }) => type) };
};
const valid = { verdict: 'valid', issues: [], reasons: [] };
const unsigned = { verdict: 'incomplete', issues: [], reasons: ['order_unsigned'] };

describe('events behind the last seal', () => {
  it('leave the verdict incomplete, which says how many they are', async () => {
    const { verdict, verified, incomplete, checked } = await verify(open);
    expect([verdict, verified]).toEqual(['incomplete', false]);
    expect(incomplete).toEqual([
      {
        type: 'order_unsigned',
        detail: 'the order and the dates of the last 6 events: no seal and no checkpoint covers them',
        eventId: at(2).id,
        count: 6,
      },
    ]);
    expect(checked).toMatchObject({ events: 8, chainHashes: 8, actorSignatures: 6, authoritySeals: 2 });
    const [one] = (await verify(open.slice(0, 3))).incomplete;
    expect(one?.detail).toMatch(/^the order and the dates of the last event: /);
  });

  it('are covered by a later seal, or by a checkpoint', async () => {
    expect(await found(chain)).toEqual(valid);
    expect(await found(open.slice(0, 2))).toEqual(valid);
    expect(await found(open, { checkpoint: checkpointOf(8) })).toEqual(valid);
  });

  it('are those that the checkpoint does not cover, if it is older', async () => {
    for (const size of [3, 5, 7]) {
      const { verdict, incomplete } = await verify(open, { checkpoint: checkpointOf(size) });
      expect(verdict).toBe('incomplete');
      expect(incomplete).toMatchObject([{ type: 'order_unsigned', count: 8 - size, eventId: at(size).id }]);
    }
    for (const size of [1, 4, 8]) expect(await found(chain, { checkpoint: checkpointOf(size) })).toEqual(valid);
  });

  it('are not covered by a checkpoint of one master, which signs nothing of the others', async () => {
    const [log] = logVectors.masters;
    expect(await found(open, { checkpoint: checkpointOf(3, log) })).toEqual(unsigned);
  });

  it('are not covered by a seal whose hash could not be recomputed', async () => {
    const events = [...chain.slice(0, 7), at(8)];
    const { incomplete } = await verify(events, { kind: 'segment' });
    expect(incomplete).toContainEqual(expect.objectContaining({ type: 'order_unsigned', count: 6, eventId: at(2).id }));
  });

  it('are not covered by a head from before, which nobody has signed', async () => {
    expect(await found(open, { mustContain: [at(7).hash] })).toEqual(unsigned);
  });
});

describe('the events of a master', () => {
  const [log] = logVectors.masters;
  const kind = 'master';

  it('are covered by a checkpoint of the master, but for their tie to the ledger', async () => {
    const without = await verify(ofMasterA, { kind });
    expect(without.incomplete.map(({ type, count }) => [type, count])).toEqual([
      ['hash_unchecked', 3],
      ['order_unsigned', 4],
    ]);
    const { incomplete } = await verify(ofMasterA, { kind, checkpoint: checkpointOf(4, log) });
    expect(incomplete.map(({ type }) => type)).toEqual(['hash_unchecked']);
    const older = await verify(ofMasterA, { kind, checkpoint: checkpointOf(3, log) });
    expect(older.incomplete).toContainEqual(expect.objectContaining({ type: 'order_unsigned', count: 1 }));
  });

  it('are invalid against it if one is left out, and all hashes are made to fit', async () => {
    const dropped = relinked(chain.toSpliced(4, 1)).filter(({ masterId }) => masterId === at(4).masterId);
    expect((await found(dropped, { kind })).verdict).toBe('incomplete');
    const { verdict, issues } = await found(dropped, { kind, extent: 'all', checkpoint: checkpointOf(4, log) });
    expect({ verdict, issues }).toEqual({ verdict: 'invalid', issues: ['shorter_than_checkpoint'] });
  });
});

/** Swaps two events with all that says where they stand. */
function swapped(events: readonly Event[], one: number, other: number): Event[] {
  const [first, second] = [at(one), at(other)];
  const next = [...events];
  next[one] = { ...second, createdAt: first.createdAt };
  next[other] = { ...first, createdAt: second.createdAt };
  return relinked(next);
}

/** Signed by the key of the supplier. */
function signedBySupplier(event: Event): Event {
  const { eventType, ledgerId, payload } = event;
  const signer = ed25519Key(Buffer.from(vectors.keys.supplier.seed_hex, 'hex'));
  return {
    ...event,
    actorSig: signDigest(digestOf({ eventType, ledgerId, canonical: canonicalJson(payload) }), signer),
  };
}

const again = '0193a000-0000-7000-8000-0000000000fe';
const forgeries: [string, Event[]][] = [
  ['leaves an event out', relinked(open.toSpliced(4, 1))],
  ['puts two events in the other order', swapped(open, 3, 4)],
  ['records an event twice', relinked(open.toSpliced(5, 0, { ...at(4), id: again }))],
  [
    'dates events otherwise',
    relinked(open.map((event, seq) => (seq < 3 || seq > 5 ? event : { ...event, createdAt: at(2).createdAt }))),
  ],
  [
    'names another type of actor',
    relinked(open.map((event, seq) => (seq < 2 ? event : { ...event, actorType: 'device' }))),
  ],
];

describe('a forger without a key of anybody', () => {
  it.each(forgeries)('who %s behind the last seal gets no further than incomplete', async (_, events) => {
    expect(await found(events)).toEqual(unsigned);
  });

  it.each(forgeries)('who %s is found by the checkpoint', async (_, events) => {
    const { verdict, issues } = await found(events, { extent: 'all', checkpoint: checkpointOf(8) });
    expect(verdict).toBe('invalid');
    expect(['wrong_checkpoint', 'shorter_than_checkpoint']).toContain(issues[0]);
  });

  it.each(forgeries)('who %s before a seal is found by the seal', async (_, events) => {
    const { verdict, issues } = await found(relinked([...events, at(8)]));
    expect({ verdict, issues }).toEqual({ verdict: 'invalid', issues: ['invalid_authority_sig'] });
  });

  it('who takes the events behind an older checkpoint for free gets no further than incomplete', async () => {
    expect(await found(relinked(open.toSpliced(7, 1)), { checkpoint: checkpointOf(6) })).toEqual(unsigned);
  });
});

describe('a thief of a key that was revoked', () => {
  const keys = keysFromDocuments([documentOf({ status: 'REVOKED', revokedAt: '2026-11-21T02:06:39.200Z' })]);
  const forged = signedBySupplier({ ...at(4), id: again, createdAt: at(7).createdAt });
  const stolen = relinked([...chain.slice(0, 7), forged]);

  it('who dates an event before the revocation gets no further than incomplete', async () => {
    expect(await found(stolen, { keys })).toEqual(unsigned);
    expect(await found(stolen, { keys, checkpoint: checkpointOf(7) })).toEqual(unsigned);
  });

  it('is found by a checkpoint of the same size', async () => {
    expect((await found(stolen, { keys, checkpoint: checkpointOf(8) })).issues).toEqual(['wrong_checkpoint']);
  });

  it('is not found if the service itself signs what the thief wrote', async () => {
    // The service seals the close over it: the date of the theft is then the service's word.
    expect((await found(resealed([...stolen.slice(0, 7), at(7), at(8)], 7), { keys })).verdict).toBe('valid');
  });
});
