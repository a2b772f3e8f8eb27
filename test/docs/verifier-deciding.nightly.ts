import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { eventToJson } from '../../src/client/call/answer-encoding.ts';
import type { Event, JsonObject } from '../../src/client/index.ts';
import { actor, authority, exported, noteOf } from '../support/export-of-vectors.ts';
import { forgedLedger } from '../support/forged-events.ts';
import { logVectors } from '../support/log-vectors.ts';
import { newOrganization } from '../support/organizations.ts';
import {
  append,
  closeOf,
  entityRequest,
  newDevice,
  newMaster,
  newOrder,
  newParty,
  type Order,
  type Party,
  signedBy,
} from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { productionSettings } from '../support/production-settings.ts';
import { runHere } from '../support/program-here.ts';
import { runNode } from '../support/running-node.ts';
import { at, chain, changed, otherValue, relinked, resealed } from '../support/vector-chain.ts';
import { actorLine, type Case, engagement, newCases, signedAgain, signedWith, stranger } from './verifier-cases.ts';
import { sameDecisions, testBoth } from './verifier-rig.ts';

/** What both verifiers decide of events that they can read. */
const { folder, file, ofEvents, ofText } = newCases();

const sealed = { actorSig: null, signingKeyId: null, actorSigPayload: null, authorityKeyId: 'svc:authority#key-1' };
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

const linkOf = '0193a000-0000-7000-8000-0000000000cd';
const sealedGrant = (change: JsonObject) =>
  resealed(changed(6, { ...sealed, payload: { ...at(6).payload, ...change } }), 6);
const hand = { actor_id: stranger, actor_type: 'service', role: 'CARRIER' };
const carried = (chain: JsonObject[string], more: JsonObject = {}) => {
  const actorSigPayload = at(5).actorSigPayload;
  return signedWith(5, { payload: { ...at(5).payload, delivery_chain: chain, ...more }, actorSigPayload });
};
const born = (change: JsonObject) => {
  const payload = { ...at(0).payload, ...change };
  return signedAgain(changed(0, { payload }));
};
const buyer = at(0).payload.buyer_actor_id as string;
const unsigned = resealed(changed(4, { ...sealed, actorId: buyer }).slice(0, 5), 4);
const unsignedText = exported(
  unsigned.map((event) => JSON.parse(eventToJson(event))),
  { kind: 'ledger' },
);
const keyless = `${JSON.stringify({ actor: { ...actor, actor_id: buyer, keys: [] } })}\n`;

const members = (all: readonly JsonObject[]) => all;

/** What the authority sealed, or a service wrote, that this service does not write. */
const written: readonly Case[] = [
  ...['PING', '', 'GENESIS\u200b', 'A'.repeat(129), 'A'.repeat(128), 'a.b:c-d_e', '9', 'PAID\u202e'].map((eventType) =>
    ofEvents(`the type ${eventType}`, signedWith(4, { eventType })),
  ),
  ...['robot', '', 'device'].map((actorType) => ofEvents(`the actor type ${actorType}`, signedWith(4, { actorType }))),
  ofEvents('an actor that is no UUID', signedWith(4, { actorId: 'X' })),
  ofEvents('a cause that is no hash', signedWith(5, { causedByHash: 'zz' })),
  ofEvents('an unsigned event', unsigned),
  {
    ...ofText('an unsigned event, and a document of the file', unsignedText.replace(actorLine, actorLine + keyless)),
    keys: [],
  },
  ...members([
    { primary_actor_id: stranger },
    { purpose: {} },
    { buyer_organization_id: stranger },
    { buyer_organization_id: 'X' },
    { ledger_type: 'OTHER' },
    { ledger_type: 'ENGAGEMENT' },
    { ledger_type: null },
  ]).map((change) => ofEvents(`GENESIS with ${JSON.stringify(change)}`, born(change))),
  ...members([
    {},
    { note: 'audited' },
    { access: 'write' },
    { access: 'read' },
    { permissions: { access: 'read', more: 1 }, access: 'read' },
    { permissions: { access: 'all' } },
    { role: '' },
    { role: '9' },
    { role: null },
    { permissions: null },
    { delegate_actor_id: 'X' },
    { link_id: linkOf },
    { replaces_link_id: linkOf },
    { granted_at: at(5).createdAt },
  ]).map((change) => ofEvents(`a grant with ${JSON.stringify(change)}`, sealedGrant(change))),
  ...[
    [],
    null,
    {},
    [hand],
    Array(16).fill(hand),
    Array(17).fill(hand),
    [1],
    [{ ...hand, note: 1 }],
    [{ ...hand, role: '' }],
    [{ ...hand, actor_type: 'robot' }],
    [{ ...hand, actor_id: 'X' }],
  ].map((chain) => ofEvents(`the delivery chain ${JSON.stringify(chain).slice(0, 120)}`, carried(chain))),
  ofEvents('a member that nobody signed', carried([hand], { price: 1 })),
];

/** Event types that look like one of the service, each with what is right. */
const types: readonly (Case & { readonly code: number })[] = [
  ...['LEDGER_CLOSED_NOTE', 'MASTER_CLOSED_BY_PHONE', 'LEDGER_DELEGATION_ASKED', 'TRACELEDGER_MASTER_CREATED.v2'].map(
    (eventType) => ({ ...ofEvents(eventType, signedWith(4, { eventType })), code: 0 }),
  ),
  ...['ORDER_CLOSED', 'SHIPMENT_DISPATCHED'].map((eventType) => {
    const actorSigPayload = { ...at(4).payload, penalty: null };
    return {
      ...ofEvents(`${eventType} without what was signed`, signedWith(4, { eventType, actorSigPayload })),
      code: 1,
    };
  }),
  { ...ofEvents('what an engagement adds to nothing', engagement({}, { buyer_actor_id: { price: 1 } })), code: 1 },
];

/** The ledger before it was closed: behind the second event nothing is sealed. */
const open = chain.slice(0, 8);
const before = { format: 'ledger-trust-export/1' };
const anchorOf = (name: string, change: object) => file(name, JSON.stringify({ ...authority, ...change }));
const unendorsed = { ...authority.log, keys: authority.log.keys.map((key) => ({ ...key, endorsement: null })) };
const renamed = { origin: 'other.example/v1', keys: [], previous: [{ ...authority.log, ended_at: at(8).createdAt }] };
const exportUnder = (log: object) => {
  const lines = open.map((event) => JSON.parse(eventToJson(event)));
  const documents = { actor, authority: { ...authority, log }, checkpoint: noteOf(8) };
  return exported(lines, { kind: 'ledger' }, {}, documents);
};
const swapped = relinked(
  open.toSpliced(3, 2, { ...at(4), createdAt: at(3).createdAt }, { ...at(3), createdAt: at(4).createdAt }),
);
const ofMaster = chain.filter(({ masterId }) => masterId === at(4).masterId);
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
  ofEvents('a checkpoint in an export of before', open, 'ledger', noteOf(8), before),
  ofEvents('a checkpoint of a segment', open, 'segment', noteOf(8)),
  {
    ...ofText('under a log key that nobody endorsed', exportUnder(unendorsed)),
    authority: anchorOf('unendorsed.json', { log: unendorsed }),
  },
  {
    ...signed,
    name: 'under an endorsed log key that the anchor in the file alone lists',
    authority: anchorOf('older.json', { log: { ...authority.log, keys: [] } }),
  },
  { ...signed, name: 'in development mode', authority: anchorOf('phase-1.json', { log: unendorsed, phase: '1' }) },
  { ...signed, name: 'under a name of before', authority: anchorOf('renamed.json', { log: renamed }) },
  { ...signed, name: 'of nobody', authority: anchorOf('no-log.json', { log: null }) },
  { ...signed, name: 'under its own keys', authority: null },
];

/** Ledgers of each type on a live node, with grants, closings and a change of keys, as it exports them. */
async function liveCases(): Promise<Case[]> {
  await using node = await runNode({ env: productionSettings(folder) });
  const { base } = node;
  const anchor = file('live-anchor.json', await (await fetch(`${base}/.well-known/svc-authority`)).text());
  const resolved = async ({ actorId }: { readonly actorId: string }) =>
    file(`${actorId}.json`, await (await fetch(`${base}/v1/resolve/svc:actor:${actorId}`)).text());
  const exportedBy = async (name: string, by: Party, actors: readonly Pick<Party, 'actorId'>[], args: string[]) => {
    const out = join(folder, `${name.replaceAll(' ', '-')}.jsonl`);
    const env = { LEDGER_TRUST_API_KEY: by.apiKey };
    const { code, err } = await runHere(['export', ...args, '--url', base, '--out', out], { env });
    if (code !== 0) throw new Error(err);
    return { name, file: out, keys: await Promise.all(actors.map(resolved)), authority: anchor };
  };

  const order = await newOrder(base);
  const { supplier, buyer, ledgerId } = order;
  const [carrier, auditor] = [await newParty(base), await newParty(base)];
  const master = await newMaster(order);
  const other = await newMaster(order, supplier, 'PO-2');
  await grant(order, 'ledger', { ledger_id: ledgerId }, { ledger_id: ledgerId }, carrier, 'OWNER');
  const ofMaster = { traceledger_master_id: master.uuid };
  await grant({ ...order, supplier: carrier }, 'master', ofMaster, { master_id: master.uuid }, auditor, 'AUDITOR');
  const chained = {
    'x-delivery-chain': JSON.stringify([{ actor_id: carrier.actorId, actor_type: 'service', role: 'X' }]),
  };
  await append(master, carrier, 'GOODS_MOVED', {
    é: 0.1,
    '\u{1f600}': [1e21, 1e-7, -0, 4.5e15],
    '\uffff': 'a\u2028"\\\u007f\u0001',
  });
  await append(other, supplier, 'GOODS_MOVED', { n: 2, remark: null }, { headers: chained });
  await append(master, buyer, 'GOODS_TAKEN', { n: 3 });
  const actors = [supplier, buyer, carrier, auditor];
  const segment = await exportedBy('a segment of a live ledger', auditor, actors, [ledgerId]);
  const one = await exportedBy('a master of a live ledger', auditor, actors, ['--master', master.uuid]);
  const revoked = { ...ofMaster, delegate_actor_id: auditor.actorId };
  await done(base, 'PATCH', '/v1/delegation/master', {
    headers: signedBy(supplier, 'MASTER_DELEGATION_REVOKED', ledgerId, revoked),
    body: { master_id: master.uuid, delegate_actor_id: auditor.actorId },
  });
  const access = { actor_id: auditor.actorId, access: 'write', expires_at: '2090-01-01T01:00:00+01:00' };
  await done(base, 'POST', `/v1/traceledger/master/${master.uuid}/access`, supplier, access);
  const close = closeOf(order, buyer);
  await done(base, 'PATCH', close.path, { headers: close.headers });
  const whole = await exportedBy('a live ledger', supplier, actors, [ledgerId]);
  const { frlLedgerId, organizationId } = await newOrganization(base, supplier);
  const ofOrganization = { organization_id: organizationId };
  await grant({ ...order, ledgerId: frlLedgerId }, 'organization', ofOrganization, ofOrganization, carrier, 'OPS');
  const root = await exportedBy('a facility root', supplier, actors, [frlLedgerId]);
  const device = await newDevice(base, { keyed: true });
  const path = '/v1/entities/root-ledger';
  await done(base, 'POST', path, { headers: entityRequest(device, 'POST', path, '') });
  const body = JSON.stringify({ counterparty_actor_id: supplier.actorId, purpose: 'REPAIR' });
  const made = await done(base, 'POST', '/v1/engagements', {
    headers: entityRequest(device, 'POST', '/v1/engagements', body),
    body,
  });
  await done(base, 'PATCH', `/v1/engagements/${made.text('ledger_id')}/close`, supplier);
  const engagement = await exportedBy('an engagement', supplier, [...actors, device], [made.text('ledger_id')]);
  const tampered = readFileSync(whole.file, 'utf8').replace('GOODS_TAKEN', 'GOODS_LOST');
  const changedOne = { ...whole, name: 'a live ledger, changed', file: file('tampered.jsonl', tampered) };
  return [whole, segment, one, root, engagement, changedOne];
}

async function grant(
  { base, supplier, ledgerId }: Order,
  scope: 'ledger' | 'master' | 'organization',
  object: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
  delegate: Party,
  role: string,
): Promise<void> {
  const eventType = { ledger: 'LEDGER', master: 'MASTER', organization: 'SUPPLIER' }[scope];
  const fields = { delegate_actor_id: delegate.actorId, role, permissions: {} };
  await done(base, 'POST', `/v1/delegation/${scope}`, {
    headers: signedBy(supplier, `${eventType}_DELEGATION_GRANTED`, ledgerId, { ...object, ...fields }),
    body: { ...query, ...fields },
  });
}

testBoth('in forged ledgers', async () => {
  const codes = await sameDecisions(forgeries);
  expect(codes.slice(0, 4)).toEqual([0, 2, 1, 1]);
  expect(codes.length).toBeGreaterThan(20);
});

testBoth('in what the service does not write', async () => {
  expect(new Set(await sameDecisions(written))).toEqual(new Set([0, 1, 2]));
});

testBoth('where types look like those of the service, or the service adds what the ledger does not have', async () => {
  expect(await sameDecisions(types)).toEqual(types.map(({ code }) => code));
});

testBoth('where nobody signed the order', async () => {
  const codes = await sameDecisions(orders);
  expect(codes).toEqual([0, 2, 2, 2, 0, 2, 1, 2, 1, 1, 1, 2, 1, 1, 66, 66, 66, 66, 1, 0, 0, 0, 2, 2]);
});

testBoth(
  'in ledgers of a live node, and wherever a field has another value',
  async () => {
    expect((await sameDecisions(await liveCases())).slice(0, 6)).toEqual([0, 2, 2, 0, 0, 1]);
    expect(changes.length).toBeGreaterThan(200);
    await sameDecisions(changes);
  },
  1_800_000,
);
