import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { eventToJson } from '../../src/client/call/answer-encoding.ts';
import type { Event } from '../../src/client/index.ts';
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
import { runNode, suiteDir } from '../support/running-node.ts';
import { at, chain, changed, otherValue, relinked, resealed } from '../support/vector-chain.ts';
import { pythonPackages, testWith } from './toolchain.ts';

/**
 * The verifier in Python knows the rules of docs/verifying.md and nothing of ours. It must find what `ledger-trust
 * verify` finds. A rule that it needs for that and that the document lacks is written into the document first.
 */
const folder = suiteDir();
const verifier = join(import.meta.dirname, 'verifier');

/** Reads files and their options as JSON from stdin, and writes the findings of each. */
const harness = `
import json, sys
from datetime import datetime, timezone
sys.path.insert(0, sys.argv[1])
from verify import verify
for export, keys, authority in json.load(sys.stdin):
    try:
        found = verify(export, keys, authority, [], datetime.now(timezone.utc))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        found = [["", "unreadable"]]
    print(json.dumps(found))
`;

/** Returns what the verifier finds in each case. */
async function findings(cases: readonly Case[]): Promise<Finding[][]> {
  const env = await pythonPackages('cryptography==50.0.2');
  const input = JSON.stringify(cases.map(({ file, keys, authority }) => [file, keys, authority]));
  const options = { env, input, encoding: 'utf8', maxBuffer: 1e8 } as const;
  const { status, stdout, stderr } = spawnSync('python3', ['-c', harness, verifier], options);
  if (status !== 0) throw new Error(stderr);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

interface Case {
  readonly name: string;
  readonly file: string;
  readonly keys: readonly string[];
  readonly authority: string | null;
}

const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
};

const vectorKeys = {
  keys: [file('actor.json', JSON.stringify(actor))],
  authority: file('anchor.json', JSON.stringify(authority)),
};
let cases = 0;

function ofEvents(name: string, events: readonly Event[], kind = 'ledger', checkpoint?: string, more = {}): Case {
  cases += 1;
  const lines = events.map((event) => JSON.parse(eventToJson(event)));
  const header = { ...(kind === 'master' ? { master_id: at(4).masterId } : {}), ...more };
  const documents = { actor, authority, ...(checkpoint === undefined ? {} : { checkpoint }) };
  const path = file(`case-${cases}.jsonl`, exported(lines, { kind }, header, documents));
  return { name, file: path, ...vectorKeys };
}

const stranger = '0193a000-0000-7000-8000-0000000000ff';
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

/** The ledger before it was closed: behind the second event nothing is sealed. */
const open = chain.slice(0, 8);
const before = { format: 'ledger-trust-export/1' };
const anchorOf = (name: string, change: object) => file(name, JSON.stringify({ ...authority, ...change }));
const unendorsed = { ...authority.log, keys: authority.log.keys.map((key) => ({ ...key, endorsement: null })) };
const renamed = { origin: 'other.example/v1', keys: [], previous: [{ ...authority.log, ended_at: at(8).createdAt }] };
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
    ...signed,
    name: 'under a log key that nobody endorsed',
    authority: anchorOf('unendorsed.json', { log: unendorsed }),
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
  await append(other, supplier, 'GOODS_MOVED', { n: 2 }, { headers: chained });
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
  await done(base, 'POST', `/v1/traceledger/master/${master.uuid}/access`, { headers: supplier.bearer, body: access });
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
  await done(base, 'PATCH', `/v1/engagements/${made.text('ledger_id')}/close`, { headers: supplier.bearer });
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

type Finding = readonly [eventId: string, type: string];

/**
 * The findings at the first event that has any: what is found at later events may follow from it. A contradiction
 * beside another finding at the same event says nothing more, and not every verifier looks for it.
 */
function firstIssues(issues: readonly Finding[]): string[] {
  const [first] = issues.map(([id]) => id).sort();
  const types = new Set(issues.filter(([id]) => id === first).map(([, type]) => type));
  if (types.size > 1) types.delete('contradiction');
  return [...types].sort().map((type) => `${first} ${type}`);
}

/** What both must decide. What could not be checked counts if nothing is wrong. */
function decision(code: number, issues: readonly Finding[], incomplete: readonly string[]) {
  return { code, issues: firstIssues(issues), incomplete: code === 1 ? [] : [...new Set(incomplete)].sort() };
}

/** What `ledger-trust verify` decides. */
async function ours({ file, keys, authority }: Case) {
  const named = [...keys.flatMap((key) => ['--keys', key]), ...(authority === null ? [] : ['--authority', authority])];
  const { code, out } = await runHere(['verify', file, '--json', ...named]);
  if (code === 66) return decision(code, [], []);
  // A checkpoint that is refused ends `verify` before it looks at the events.
  if (out === '') return decision(code, [['', 'refused_checkpoint']], []);
  type Shown = { readonly event_id: string; readonly type: string };
  const { issues, incomplete } = JSON.parse(out) as Record<'issues' | 'incomplete', readonly Shown[]>;
  const found = issues.map(({ event_id, type }) => [event_id, type] as const);
  return decision(
    code,
    found,
    incomplete.map(({ type }) => type),
  );
}

function theirs(found: readonly Finding[]) {
  if (found[0]?.[1] === 'unreadable') return decision(66, [], []);
  const isOpen = ([, type]: Finding) => type.startsWith('? ');
  const issues = found.filter((finding) => !isOpen(finding));
  const open = found.filter(isOpen).map(([, type]) => type.slice(2));
  return decision(issues.length > 0 ? 1 : open.length > 0 ? 2 : 0, issues, open);
}

test('the verifier in Python imports the standard library, cryptography and its own files alone', () => {
  const sources = readdirSync(verifier).filter((name) => name.endsWith('.py'));
  expect(sources).toEqual(['checkpoint.py', 'formulas.py', 'rules.py', 'verify.py']);
  const imported = sources.flatMap((name) =>
    [...readFileSync(join(verifier, name), 'utf8').matchAll(/^\s*(?:from|import) (.*)$/gm)].flatMap(
      ([line, names = '']) => (line.includes('from') ? [names.split(/[ .]/)[0]] : names.split(', ')),
    ),
  );
  const known =
    'argparse base64 checkpoint cryptography datetime decimal formulas hashlib json math re rules sys'.split(' ');
  expect([...new Set(imported)].sort()).toEqual(known);
});

/** Both verifiers look at the cases. Returns the exit codes of `ledger-trust verify` once both decide the same. */
async function sameDecisions(all: readonly Case[]): Promise<number[]> {
  const found = await findings(all);
  const differing: unknown[] = [];
  const codes: number[] = [];
  for (const [index, one] of all.entries()) {
    const [expected, given] = [await ours(one), theirs(found[index] ?? [])];
    codes.push(expected.code);
    if (!isDeepStrictEqual(given, expected)) differing.push({ name: one.name, expected, given });
  }
  expect(differing).toEqual([]);
  return codes;
}

const title = 'a verifier in Python that knows the rules of verifying.md alone finds what ledger-trust verify finds';

/** Packages may have to be fetched. */
const fewMs = 300_000;
const manyMs = 1_800_000;

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
    expect(codes).toEqual([0, 2, 2, 2, 0, 2, 1, 2, 1, 1, 1, 2, 1, 1, 66, 66, 66, 66, 1, 0, 0, 2, 2]);
  },
  fewMs,
);

testWith(
  'python3',
  `${title} in ledgers of a live node, and wherever a field has another value`,
  async () => {
    expect((await sameDecisions(await liveCases())).slice(0, 6)).toEqual([0, 2, 2, 0, 0, 1]);
    expect(changes.length).toBeGreaterThan(200);
    await sameDecisions(changes);
  },
  manyMs,
);
