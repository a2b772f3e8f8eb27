import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { eventToJson } from '../../src/client/call/answer-encoding.ts';
import type { Event, JsonObject, JsonValue } from '../../src/client/index.ts';
import { digestOf } from '../../src/client/signing/signing.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { ed25519Key, signDigest } from '../../src/domain/keys/key-object.ts';
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
import { vectors } from '../support/vectors.ts';
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
from verify import NoExport, verify
for export, keys, authority in json.load(sys.stdin):
    try:
        found = verify(export, keys, authority, [], datetime.now(timezone.utc))
    except NoExport as error:
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

const ofMaster = chain.filter(({ masterId }) => masterId === at(4).masterId);
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

/** Events of the supplier as it signs them, in a ledger that fits. */
function signedAgain(events: readonly Event[], from = 0): Event[] {
  const signer = ed25519Key(Buffer.from(vectors.keys.supplier.seed_hex, 'hex'));
  const signed = events.map((event, index) => {
    if (event.actorSig === null || index < from) return event;
    const input = { ...event, canonical: canonicalJson(event.actorSigPayload ?? event.payload) };
    return { ...event, actorSig: signDigest(digestOf(input), signer) };
  });
  return resealed(signed, from);
}

const signedWith = (index: number, change: Partial<Event>) => signedAgain(changed(index, change), index);
const appended = (added: JsonObject) => signedWith(4, { payload: { ...at(4).payload, ...added } });

/** An export of a master whose first line does not say so. */
function ofNoMaster(events: readonly Event[]): string {
  cases += 1;
  const lines = events.map((event) => JSON.parse(eventToJson(event)));
  return file(`case-${cases}.jsonl`, exported(lines, { kind: 'master' }));
}

function ofText(name: string, text: string): Case {
  cases += 1;
  return { name, file: file(`case-${cases}.jsonl`, text), ...vectorKeys };
}

const numbers = { amount: 1e16, large: 123456789012345680000, part: 0.5, zero: 0 };
const numbersText = exported(
  appended(numbers).map((event) => JSON.parse(eventToJson(event))),
  { kind: 'ledger' },
);
const text = exported(undefined, { kind: 'ledger' });
/** With spaces at the end of the first line, up to a length that counts the line feed. */
const withFirstLine = (length: number) => text.replace('\n', `${' '.repeat(length - text.indexOf('\n') - 1)}\n`);
/** An event whose payload is nested so deeply, inside of its line and its event. */
function deepText(levels: number): string {
  let value: JsonValue = 1;
  for (let level = 1; level < levels; level += 1) value = [value];
  const events = appended({ deep: value }).map((event) => JSON.parse(eventToJson(event)));
  return exported(events, { kind: 'ledger' });
}
const actorLine = `${JSON.stringify({ actor })}\n`;

/** Files that say another thing, or that readers could read in more than one way. */
const readings: readonly Case[] = [
  ...[
    ['"amount":10000000000000000', '"amount":1e16'],
    ['"amount":10000000000000000', '"amount":10000000000000000.0'],
    ['"amount":10000000000000000', '"amount":10000000000000001'],
    ['"amount":10000000000000000', '"amount":10000000000000001.0'],
    ['"amount":10000000000000000', '"amount":1.0000000000000001e16'],
    ['"amount":10000000000000000', '"amount":1e999'],
    ['"large":123456789012345680000', '"large":1.2345678901234568e20'],
    ['"large":123456789012345680000', '"large":123456789012345683968'],
    ['"part":0.5', '"part":0.49999999999999999'],
    ['"part":0.5', '"part":0.50000000000000000000000000000'],
    ['"part":0.5', '"part":0.50000000000000000000000000001'],
    ['"zero":0', '"zero":-0'],
    ['"zero":0', '"zero":0.00e-9'],
    ['"zero":0', '"zero":1e-400'],
  ].map(([recorded = '', shown = '']) => ofText(shown, numbersText.replaceAll(recorded, shown))),
  ofText('a carriage return at the end of each line', text.replaceAll('\n', '\r\n')),
  ofText('a carriage return inside a line', text.replace('{"event":', '{\r"event":')),
  ofText('two carriage returns', text.replace('\n', '\r\r\n')),
  ofText('a line of spaces', text.replace('\n', '\n \t\n')),
  ...['\f', '\v', '\u0085', '\u2028'].map((white) =>
    ofText(`a line of U+${white.charCodeAt(0).toString(16)}`, text.replace('\n', `\n${white}\n`)),
  ),
  ofText('a byte order mark', `\ufeff${text}`),
  ofText('a member more in the first line', text.replace('"format"', '"note":"audited","format"')),
  ofText('a first line without exported_at', text.replace(/,"exported_at":"[^"]*"/, '')),
  ...['2026-11-21', '\\ud800'].map((time) =>
    ofText(`exported_at ${time}`, text.replace(/"exported_at":"[^"]*"/, `"exported_at":"${time}"`)),
  ),
  ofText('master_id null in the first line', text.replace('"exported_at"', '"master_id":null,"exported_at"')),
  ofText('a member more in the end', text.replace('"end":{', '"end":{"audited":true,')),
  ofText('an end of an unknown kind', text.replace('"kind":"ledger"', '"kind":"whole"')),
  ofText('an end without a kind', text.replace(',"kind":"ledger"', '')),
  ofText('an actor twice', text.replace(actorLine, actorLine.repeat(2))),
  ofText('an empty line before the first', `\n${text}`),
  ofText('a first line of 4,096 bytes', withFirstLine(4_096)),
  ofText('a first line of 4,097 bytes', withFirstLine(4_097)),
  ofText('a long line', text.replace('{"event":', `{"event":${' '.repeat(4 * 1024 * 1024)}`)),
  ...[124, 125].map((levels) => ofText(`${levels} levels in a payload`, deepText(levels))),
  ...['"kid"', '"valid_from"', '"actor_id":"0193a000-0000-7000-8000-00000000000a","authority_attestations"'].map(
    (member) => ofText(`an actor without ${member}`, text.replace(actorLine, actorLine.replace(member, '"x"'))),
  ),
  ofText('an actor whose keys are none', text.replace(actorLine, actorLine.replace(/"keys":\[.*?\]/, '"keys":null'))),
  ofText('a trust anchor without its phase', text.replace('"phase"', '"stage"')),
  ofText('a trust anchor whose key is a number', text.replace(/"fingerprint":"[^"]*"/, '"fingerprint":5')),
  ...['1.5', '9007199254740992'].map((seq) => ofText(`seq ${seq}`, text.replace('"seq":1,', `"seq":${seq},`))),
  ofText('a pair of one half', text.replace('"role":"PARTICIPANT"', '"role":"\\ud800"')),
  ...[
    ['"master_seq":1,', '"master_seq":true,'],
    ['"seq":1,', '"seq":true,'],
    ['"actor_type":"service"', '"actor_type":5'],
    ['"caused_by_hash":null', '"caused_by_hash":5'],
    ['"actor_sig_payload":null', '"actor_sig_payload":[]'],
  ].map(([recorded = '', shown = '']) => ofText(shown, text.replace(recorded, shown))),
];

const place = { ...at(4).payload, traceledger_master_uuid: '' };
const closedAlone = signedAgain(
  [at(0), at(1), at(8)].map((event, seq) => ({ ...event, seq })),
  2,
);
const granted = (expiresAt: string | null) => {
  const { payload, actorSigPayload } = at(6);
  const expires = { expires_at: expiresAt };
  return signedWith(6, { payload: { ...payload, ...expires }, actorSigPayload: { ...actorSigPayload, ...expires } });
};

/** An engagement whose last event has these members, of which the author signed all but `added`. */
function engagement(sent: JsonObject, added: JsonObject = {}): Event[] {
  const genesis = { ledger_type: 'ENGAGEMENT', primary_actor_id: at(4).actorId, counterparty_actor_id: stranger };
  const names = { traceledger_master_uuid: at(2).masterId, business_ref: 'R', scope: 'JOB' };
  const request = { ledger_id: at(2).ledgerId, business_ref: 'R', scope: 'JOB' };
  const created = { payload: { ...request, ...names }, actorSigPayload: request };
  const signed = { ...names, ...sent };
  const actorSigPayload = Object.keys(added).length === 0 ? null : signed;
  return signedAgain([
    { ...at(0), payload: { ...genesis, purpose: 'REPAIR' } },
    { ...at(2), ...created, seq: 1 },
    { ...at(4), payload: { ...signed, ...added }, actorSigPayload, seq: 2 },
  ]);
}

const forms: readonly Case[] = [
  ofText('seq -1', text.replace('"seq":1,', '"seq":-1,')),
  ofEvents('a member that is null', appended({ remark: null, lines: [null] })),
  ofEvents('members that the service adds on other ledgers', engagement({ buyer_actor_id: 'B', supplier_actor_id: 7 })),
  ofEvents('the same as null', engagement({ buyer_actor_id: null, supplier_actor_id: null })),
  ofEvents('what was signed beside a payload that is the same', signedWith(4, { actorSigPayload: at(4).payload })),
  ofEvents('an event of the empty master', signedWith(4, { masterId: '', payload: place })),
  ofEvents('a place that is no number', signedWith(4, { masterSeq: true as unknown as number })),
  ofEvents('an actor type that is no text', signedWith(4, { actorType: 5 as unknown as string })),
  { ...ofEvents('who asked for the close, under keys of the file', closedAlone), keys: [] },
  ...[
    '2099-06-30T23:59:60Z',
    '2099-07-01T01:59:60.5+02:00',
    '2099-06-29T23:59:60Z',
    '2099-06-30T22:59:60Z',
    '2099-01-01t00:00:00z',
    '2099-01-01T00:00:00.123456789-00:00',
    '2026-11-21T02:06:39.1069Z',
    '2026-11-21T02:06:39.107Z',
    '0000-02-29T00:00:00Z',
    '2099-02-29T00:00:00Z',
    '20990101T000000Z',
    '2099-W01-1T00:00:00+00:00',
    '2099-01-01 00:00:00+00:00',
    '2099-01-01T00Z',
    '2099-01-01T00:00Z',
    '2099-01-01T00:00:00,5Z',
    '2099-01-01T24:00:00Z',
    '2099-01-01T00:00:00+00:00:30',
    '2099-01-01T00:00:00+25:00',
    '2099-01-01T00:00:00',
    '9999-12-31T23:59:59-00:01',
    '\u0662\u0660\u0669\u0669-01-01T00:00:00Z',
    '',
    null,
  ].map((time) => ofEvents(`a grant until ${time}`, granted(time))),
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

/** The first master with another name, in all of its events and in what its author signed. */
function named(name: 'business_ref' | 'scope', value: string | null): Event[] {
  const of = <T extends JsonObject | null>(payload: T): T =>
    payload !== null && Object.hasOwn(payload, name) ? { ...payload, [name]: value } : payload;
  const renamed = (event: Event): Event =>
    event.masterId === at(2).masterId
      ? { ...event, payload: of(event.payload), actorSigPayload: of(event.actorSigPayload) }
      : event;
  return signedAgain(chain.map(renamed));
}

/** Event 4 with so many bytes of payload. */
function ofBytes(bytes: number): Event[] {
  const rest = bytes - canonicalJson({ ...at(4).payload, note: '' }).length;
  return appended({ note: 'x'.repeat(rest) });
}

/** The grant as POST …/access signs it, with what was not signed changed. */
function accessed(change: JsonObject): Event[] {
  const { role: _, permissions: __, ...signed } = at(6).actorSigPayload ?? {};
  const actorSigPayload = { ...signed, access: 'read' };
  return signedWith(6, { payload: { ...at(6).payload, access: 'read', role: 'ACCESS', ...change }, actorSigPayload });
}

/** What the authority sealed, or a service wrote, that this service does not write. */
const written: readonly Case[] = [
  ...['PING', '', 'GENESIS\u200b', 'A'.repeat(129), 'A'.repeat(128), 'a.b:c-d_e', '9', 'PAID\u202e'].map((eventType) =>
    ofEvents(`the type ${eventType}`, signedWith(4, { eventType })),
  ),
  ...['robot', '', 'device'].map((actorType) => ofEvents(`the actor type ${actorType}`, signedWith(4, { actorType }))),
  ofEvents('an actor that is no UUID', signedWith(4, { actorId: 'X' })),
  ...['', 'a\0', 'a\u007f', 'a\u009b', '\u202eOP', '\u{1f4a9}'.repeat(256), '\u{1f4a9}'.repeat(257), null].map((name) =>
    ofEvents(`the business_ref ${JSON.stringify(name).slice(0, 30)}`, named('business_ref', name)),
  ),
  ...['', '9', 'a\n', '\uff11', 'A b-c_9', 'a'.repeat(64), 'a'.repeat(65), null].map((name) =>
    ofEvents(`the scope ${JSON.stringify(name).slice(0, 30)}`, named('scope', name)),
  ),
  ...[0, 1].map((more) => ofEvents(`all the bytes that an event may have and ${more}`, ofBytes(572 * 1024 + more))),
  ...members([{}, { role: 'OWNER' }, { role: 'access' }]).map((change) =>
    ofEvents(`an access with ${JSON.stringify(change)}`, accessed(change)),
  ),
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

/** The events of the vectors as each reader may have them, with one event changed. */
function views(name: string, index: number, events: readonly Event[]): Case[] {
  const { masterId } = at(index);
  const parts: [string, readonly Event[]][] = [
    ['ledger', events],
    ['segment', events.filter(({ seq }) => seq !== 1)],
    ['segment', events.slice(2)],
    ['segment', events.filter(({ seq }) => seq === index)],
    ...(masterId === null ? [] : [['master', events.filter((one) => one.masterId === masterId)] as [string, Event[]]]),
  ];
  return parts.map(([kind, seen], at) => ofEvents(`${name}, ${kind} ${at}`, seen, kind));
}

/** A member of a payload that is missing or has another value, signed so by its actor or not. */
const otherMembers: readonly Case[] = [2, 4, 5, 6, 7, 8].flatMap((index) => {
  const { payload, actorSigPayload } = at(index);
  return Object.keys(payload).flatMap((member) => {
    const { [member]: _, ...without } = payload;
    const { [member]: signed, ...withoutSigned } = actorSigPayload ?? {};
    const isSigned = signed !== undefined;
    return [
      { payload: without },
      { payload: { ...payload, [member]: 5 } },
      ...(isSigned ? [{ payload: without, actorSigPayload: withoutSigned }] : []),
      ...(isSigned
        ? [{ payload: { ...payload, [member]: 5 }, actorSigPayload: { ...actorSigPayload, [member]: 5 } }]
        : []),
    ].flatMap((change) =>
      views(`#${index} with ${member} ${JSON.stringify(change).slice(0, 120)}`, index, signedWith(index, change)),
    );
  });
});

const laterBy = (event: Event, change: Partial<Event>): Event => ({
  ...event,
  id: stranger,
  seq: 9,
  createdAt: '2026-11-21T02:06:39.109Z',
  ...change,
});
const placed = (events: readonly Event[]) => signedAgain(relinked(events));
const grantOf = (more: JsonObject) => ({
  payload: { ...at(6).payload, ...more },
  actorSigPayload: at(6).actorSigPayload,
});
const end = { traceledger_master_id: at(6).masterId, delegate_actor_id: at(6).payload.delegate_actor_id as string };
const ended = (more: JsonObject) => ({
  ...at(6),
  id: stranger,
  eventType: 'MASTER_DELEGATION_REVOKED',
  payload: { ...end, link_id: at(6).payload.link_id as string, revoked_at: at(6).createdAt, ...more },
  actorSigPayload: end,
});
const linkOfMaster = { link_id: linkOf };

const ofOrganization = laterBy(at(6), {
  eventType: 'SUPPLIER_DELEGATION_GRANTED',
  masterId: null,
  masterSeq: null,
  payload: {
    organization_id: stranger,
    delegate_actor_id: stranger,
    role: 'OPS',
    permissions: {},
    link_id: linkOf,
    granted_at: '2026-11-21T02:06:39.109Z',
  },
  actorSigPayload: { organization_id: stranger, delegate_actor_id: stranger, role: 'OPS', permissions: {} },
});

/** What contradicts the events before it, also where not all of them are at hand. */
const partial: readonly Case[] = [
  ...views('an event behind a close', 5, signedAgain(relinked([...chain, laterBy(at(5), {})]), 9)),
  ...views(
    'an event behind the close of its master',
    4,
    placed(chain.toSpliced(8, 0, laterBy(at(4), { createdAt: at(7).createdAt }))),
  ),
  ...views('a grant of an organization behind a close', 6, signedAgain(relinked([...chain, ofOrganization]), 9)),
  ...views('the end of a grant', 6, placed(chain.toSpliced(7, 0, ended({})))),
  ...views(
    'the end of a grant, dated otherwise',
    6,
    placed(chain.toSpliced(7, 0, ended({ revoked_at: at(5).createdAt }))),
  ),
  ...views('the end of another grant', 6, placed(chain.toSpliced(7, 0, ended(linkOfMaster)))),
  ...views('the end of a grant before it', 6, placed(chain.toSpliced(6, 0, ended({ revoked_at: at(6).createdAt })))),
  ...views('a grant twice', 6, placed(chain.toSpliced(7, 0, { ...at(6), id: stranger }))),
  ...views(
    'a grant in place of another',
    6,
    placed(
      chain.toSpliced(7, 0, {
        ...at(6),
        id: stranger,
        ...grantOf({ ...linkOfMaster, replaces_link_id: at(6).payload.link_id as string }),
      }),
    ),
  ),
  ...views(
    'a grant beside another',
    6,
    placed(chain.toSpliced(7, 0, { ...at(6), id: stranger, ...grantOf(linkOfMaster) })),
  ),
  ...views('a master twice', 2, placed(chain.toSpliced(3, 0, { ...at(2), id: stranger }))),
  ...views('a master without its beginning', 4, signedAgain(relinked(chain).filter(({ seq }) => seq !== 2))),
  ofEvents(
    'a segment that begins without the beginning of a master',
    resealed(
      chain.filter(({ seq }) => seq !== 2).map((event, seq) => ({ ...event, seq })),
      0,
    ),
    'segment',
  ),
  ofEvents('two masters in the export of one', chain.slice(2), 'master'),
  { ...ofEvents('a master whose export does not name it', ofMaster), file: ofNoMaster(ofMaster) },
  { ...ofEvents('two masters whose export does not name one', ofMaster), file: ofNoMaster(chain.slice(2, 6)) },
];

const numbered = (kind: string, index: number) => `0193a000-0000-7000-${kind}-${index.toString(16).padStart(12, '0')}`;
function accessOf(index: number, createdAt: string, expiresAt: string, more: JsonObject = {}): Event {
  const members = { traceledger_master_id: at(6).masterId, delegate_actor_id: numbered('8001', index) };
  const derived = { access: 'read', role: 'ACCESS', permissions: { access: 'read' } };
  const own = { link_id: numbered('8002', index), granted_at: createdAt, expires_at: expiresAt };
  const payload = { ...members, ...derived, ...own, ...more };
  return { ...at(6), ...sealed, id: numbered('8003', index), createdAt, payload };
}
const [early, second, third] = ['2026-11-21T02:06:40.000Z', '2026-11-21T02:06:41.000Z', '2026-11-21T02:06:42.000Z'];
/** Grants to 1,000 actors that have run out: most in one second, number 500 and 700 before. */
const expired = Array.from({ length: 1_000 }, (_, index) =>
  accessOf(index, at(6).createdAt, index === 500 || index === 700 ? early : second),
);
const behindExpired = (...more: readonly Event[]) => resealed(relinked([...chain.slice(0, 6), ...expired, ...more]), 6);
const last = '2099-01-01T00:00:00Z';
const newGrant = (index: number, more: JsonObject = {}) => ({
  ...accessOf(index, third, last, { link_id: numbered('8004', index), ...more }),
  id: numbered('8005', index),
});
const replacing = (index: number) => ({ replaces_link_id: numbered('8002', index) });

/** Which grants are forgotten that ran out. The first grant to one more actor makes room for itself. */
const forgotten: readonly Case[] = [
  ofEvents('a grant to the actor that was forgotten', behindExpired(newGrant(1_000), newGrant(500))),
  ofEvents('the same, with what it would replace', behindExpired(newGrant(1_000), newGrant(500, replacing(500)))),
  ofEvents('a grant to one that was not forgotten', behindExpired(newGrant(1_000), newGrant(700, replacing(700)))),
  ofEvents('the same, without what it replaces', behindExpired(newGrant(1_000), newGrant(700))),
  ofEvents('a second one forgotten', behindExpired(newGrant(1_000), newGrant(1_001), newGrant(700))),
  ofEvents('a third one, by its link', behindExpired(...[1_000, 1_001, 1_002, 0].map((index) => newGrant(index)))),
  ofEvents('one that is replaced', behindExpired(newGrant(3, replacing(3)), newGrant(500, replacing(500)))),
  ofEvents('the end of one that was forgotten', behindExpired(newGrant(1_000), endOf(500))),
  ofEvents('the end of one that was not', behindExpired(newGrant(1_000), endOf(700))),
];

function endOf(index: number): Event {
  const members = { traceledger_master_id: at(6).masterId, delegate_actor_id: numbered('8001', index) };
  const payload = { ...members, link_id: numbered('8002', index), revoked_at: third };
  const end = { id: numbered('8005', index), eventType: 'MASTER_DELEGATION_REVOKED', createdAt: third, payload };
  return { ...at(6), ...sealed, ...end };
}

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
  `${title} in files that more than one thing could be read in, and in events of odd forms`,
  async () => {
    const codes = await sameDecisions([...readings, ...forms]);
    expect(new Set(codes.slice(0, readings.length))).toEqual(new Set([0, 66]));
    expect(new Set(codes.slice(readings.length))).toEqual(new Set([0, 1, 2, 66]));
  },
  fewMs,
);

testWith(
  'python3',
  `${title} in what the service does not write`,
  async () => {
    expect(new Set(await sameDecisions(written))).toEqual(new Set([0, 1, 2]));
  },
  fewMs,
);

testWith(
  'python3',
  `${title} where events are missing, and a member is missing or another`,
  async () => {
    expect(new Set(await sameDecisions(partial))).toEqual(new Set([0, 1, 2]));
    const codes = await sameDecisions(otherMembers);
    expect(codes.filter((code) => code === 1).length).toBeGreaterThan(300);
    expect(new Set(codes)).toEqual(new Set([0, 1, 2]));
  },
  manyMs,
);

testWith(
  'python3',
  `${title} where grants have run out and were forgotten`,
  async () => {
    expect(await sameDecisions(forgotten)).toEqual([0, 1, 0, 1, 0, 0, 0, 1, 0]);
  },
  fewMs,
);

testWith(
  'python3',
  `${title} where types look like those of the service, or the service adds what the ledger does not have`,
  async () => {
    expect(await sameDecisions(types)).toEqual(types.map(({ code }) => code));
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
  `${title} in ledgers of a live node, and wherever a field has another value`,
  async () => {
    expect((await sameDecisions(await liveCases())).slice(0, 6)).toEqual([0, 2, 2, 0, 0, 1]);
    expect(changes.length).toBeGreaterThan(200);
    await sameDecisions(changes);
  },
  manyMs,
);
