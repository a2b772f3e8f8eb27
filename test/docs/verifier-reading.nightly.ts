import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Event, JsonObject, JsonValue } from '../../src/client/index.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { actor } from '../support/export-of-vectors.ts';
import { at, chain, changed, resealed } from '../support/vector-chain.ts';
import { testWith } from './toolchain.ts';
import {
  actorLine,
  appended,
  type Case,
  engagement,
  exportOf,
  linkOf,
  ofEvents,
  ofText,
  sealed,
  signedAgain,
  signedWith,
  stranger,
  text,
} from './verifier-cases.ts';
import { fewMs, sameDecisions, title, verifier } from './verifier-decisions.ts';

const numbers = { amount: 1e16, large: 123456789012345680000, part: 0.5, zero: 0 };
const numbersText = exportOf(appended(numbers));
/** With spaces at the end of the first line, up to a length that counts the line feed. */
const withFirstLine = (length: number) => text.replace('\n', `${' '.repeat(length - text.indexOf('\n') - 1)}\n`);
/** An event whose payload is nested so deeply, inside of its line and its event. */
function deepText(levels: number): string {
  let value: JsonValue = 1;
  for (let level = 1; level < levels; level += 1) value = [value];
  return exportOf(appended({ deep: value }));
}

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
const unsignedText = exportOf(unsigned);
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
