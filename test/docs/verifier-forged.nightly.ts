import { expect } from 'vitest';
import type { Event } from '../../src/client/index.ts';
import { actor, authority, exported, noteOf } from '../support/export-of-vectors.ts';
import { forgedLedger } from '../support/forged-events.ts';
import { logVectors } from '../support/log-vectors.ts';
import { at, chain, changed, otherValue, relinked, resealed } from '../support/vector-chain.ts';
import { testWith } from './toolchain.ts';
import { type Case, linesOf, ofEvents, ofMaster, ofText, sealed, stranger } from './verifier-cases.ts';
import { fewMs, manyMs, sameDecisions, title } from './verifier-decisions.ts';

const late = { ...at(5), id: stranger, seq: 9, masterSeq: 2, createdAt: '2026-11-21T02:06:39.109Z' };

/** Every field of one event of each kind with another value, as it is and with all hashes and seals made to fit. */
const changes = [0, 1, 2, 4, 6, 8].flatMap((index) => {
  const event = at(index);
  return (Object.keys(event) as (keyof Event)[]).flatMap((name) => {
    const events = changed(index, { [name]: otherValue(name, event[name]) });
    const fitting = resealed(events, index);
    return [ofEvents(`${name} of #${index}`, events), ofEvents(`${name} of #${index}, resealed`, fitting)];
  });
});

const forger = forgedLedger();
const forgeries: readonly Case[] = [
  ofEvents('the ledger of the vectors', chain),
  { ...ofEvents('the same, under its own keys', chain), keys: [], authority: null },
  ofEvents('every key, hash and signature of a forger', forger.events),
  ofEvents('without an event in the middle', chain.toSpliced(3, 1)),
  ofEvents('without its beginning', chain.slice(2)),
  ofEvents('two events in the other order', chain.toSpliced(4, 2, at(5), at(4))),
  ofEvents('an event twice', chain.toSpliced(4, 0, at(4))),
  ofEvents(
    'a master',
    chain.filter(({ masterId }) => masterId === at(4).masterId),
    'master',
  ),
  ofEvents(
    'a segment',
    chain.filter(({ seq }) => seq !== 5),
    'segment',
  ),
  ofEvents('no event', []),
  ofEvents('an event of a stranger', resealed(changed(4, { ...sealed, actorId: stranger }), 4)),
  ofEvents('an event behind the close', resealed([...chain, late], 9)),
  ofEvents('an event of the future', resealed(changed(8, { createdAt: '2099-01-01T00:00:00.000Z' }), 8)),
  ...['2026-02-30T00:00:00.000Z', '2026-11-21T02:06:60.000Z', '2026-06-30T23:59:60.000Z', '2026-11-21T02:06:39Z'].map(
    (createdAt) => ofEvents(`an event of ${createdAt}`, resealed(changed(8, { createdAt }), 8)),
  ),
  ...['svc:authority#key-01', 'svc:authority#key-1234567890'].map((authorityKeyId) =>
    ofEvents(`a seal of ${authorityKeyId}`, resealed(changed(0, { authorityKeyId }), 0)),
  ),
  ofEvents('an event type with a NUL', resealed(changed(8, { eventType: 'GOODS\0' }), 8)),
  ofEvents(
    'an event without a signature and without a seal',
    resealed(changed(4, { ...sealed, authorityKeyId: null }), 4, false),
  ),
];

/** The ledger before it was closed: behind the second event nothing is sealed. */
const open = chain.slice(0, 8);
const before = { format: 'ledger-trust-export/1' };
const anchorOf = (change: object) => JSON.stringify({ ...authority, ...change });
const unendorsed = { ...authority.log, keys: authority.log.keys.map((key) => ({ ...key, endorsement: null })) };
const renamed = { origin: 'other.example/v1', keys: [], previous: [{ ...authority.log, ended_at: at(8).createdAt }] };
const exportUnder = (log: object) => {
  const documents = { actor, authority: { ...authority, log }, checkpoint: noteOf(8) };
  return exported(linesOf(open), { kind: 'ledger' }, {}, documents);
};
const swapped = relinked(
  open.toSpliced(3, 2, { ...at(4), createdAt: at(3).createdAt }, { ...at(3), createdAt: at(4).createdAt }),
);
const masterLog = logVectors.masters.find(({ origin }) => origin.endsWith(String(at(4).masterId)));
const signed = ofEvents('an open ledger with its checkpoint', open, 'ledger', noteOf(8));
const orders: readonly Case[] = [
  signed,
  ofEvents('an open ledger', open),
  ofEvents('an open ledger in an export of before', open, 'ledger', undefined, before),
  ofEvents('an open ledger with an older checkpoint', open, 'ledger', noteOf(5)),
  ofEvents('a closed ledger with an older checkpoint', chain, 'ledger', noteOf(5)),
  ofEvents('an event left out behind the last seal', relinked(open.toSpliced(4, 1))),
  ofEvents('the same with the true checkpoint', relinked(open.toSpliced(4, 1)), 'ledger', noteOf(8)),
  ofEvents('two events in the other order behind the last seal', swapped),
  ofEvents('the same with the true checkpoint', swapped, 'ledger', noteOf(8)),
  ofEvents('an event left out before a seal', relinked(chain.toSpliced(4, 1))),
  ofEvents('a ledger cut short', open.slice(0, 6), 'ledger', noteOf(8)),
  ofEvents('a master with its checkpoint', ofMaster, 'master', noteOf(4, masterLog)),
  ofEvents('a master with the checkpoint of its ledger', ofMaster, 'master', noteOf(8)),
  ofEvents('a checkpoint with another size', open, 'ledger', noteOf(8).replace('\n8\n', '\n7\n')),
  ofEvents('a checkpoint that is none', open, 'ledger', 'no note'),
  ofEvents('a checkpoint with more behind it', open, 'ledger', `${noteOf(8)}\naudited\n`),
  ...['AAAAAAA=', 'AAAAAAB=', 'AAAAAA==', 'AAAA', 'AAAAAAAA\0', 'AAAAAAAA\t'].map((blob) =>
    ofEvents(`a checkpoint with the signature ${blob} of a witness`, open, 'ledger', `${noteOf(8)}— witness ${blob}\n`),
  ),
  ofEvents('a checkpoint of more than 2^53 events', open, 'ledger', noteOf(8).replace('\n8\n', '\n9007199254740992\n')),
  ofEvents('a checkpoint with 101 signatures', open, 'ledger', `${noteOf(8)}${'— witness AAAAAAA=\n'.repeat(100)}`),
  ofEvents('a checkpoint of 131,073 characters', open, 'ledger', `${noteOf(8)}— ${'w'.repeat(131_000)} AAAAAAA=\n`),
  ofEvents('a checkpoint in an export of before', open, 'ledger', noteOf(8), before),
  ofEvents('a checkpoint of a segment', open, 'segment', noteOf(8)),
  {
    ...ofText('under a log key that nobody endorsed', exportUnder(unendorsed)),
    authority: anchorOf({ log: unendorsed }),
  },
  {
    ...signed,
    name: 'under an endorsed log key that the anchor in the file alone lists',
    authority: anchorOf({ log: { ...authority.log, keys: [] } }),
  },
  { ...signed, name: 'in development mode', authority: anchorOf({ log: unendorsed, phase: '1' }) },
  { ...signed, name: 'under a name of before', authority: anchorOf({ log: renamed }) },
  { ...signed, name: 'of nobody', authority: anchorOf({ log: null }) },
  { ...signed, name: 'under its own keys', authority: null },
];

testWith(
  'python3',
  `${title} in forged ledgers`,
  async () => {
    const codes = await sameDecisions(forgeries);
    expect(codes.slice(0, 4)).toEqual([0, 2, 1, 1]);
    expect(codes.length).toBeGreaterThan(20);
  },
  fewMs,
);

testWith(
  'python3',
  `${title} where nobody signed the order`,
  async () => {
    const codes = await sameDecisions(orders);
    expect(codes).toEqual([
      0, 2, 2, 2, 0, 2, 1, 2, 1, 1, 1, 2, 1, 1, 66, 66, 0, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 1, 0, 0, 0, 2, 2,
    ]);
  },
  fewMs,
);

testWith(
  'python3',
  `${title} wherever a field has another value`,
  async () => {
    expect(changes.length).toBeGreaterThan(200);
    await sameDecisions(changes);
  },
  manyMs,
);
