import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventToJson } from '../../src/client/call/answer-encoding.ts';
import type { JsonObject } from '../../src/client/index.ts';
import { exported } from '../support/export-of-vectors.ts';
import { at } from '../support/vector-chain.ts';
import { actorLine, type Case, engagement, newCases, signedAgain, signedWith } from './verifier-cases.ts';
import { sameDecisions, testBoth, verifier } from './verifier-rig.ts';

/** What both verifiers read in an export: its text, and the forms of its events. */
const { ofEvents, ofText } = newCases();
const appended = (added: JsonObject) => signedWith(4, { payload: { ...at(4).payload, ...added } });

const numbers = { amount: 1e16, large: 123456789012345680000, part: 0.5, zero: 0 };
const numbersText = exported(
  appended(numbers).map((event) => JSON.parse(eventToJson(event))),
  { kind: 'ledger' },
);
const text = exported(undefined, { kind: 'ledger' });

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

testBoth('in files that more than one thing could be read in, and in events of odd forms', async () => {
  const codes = await sameDecisions([...readings, ...forms]);
  expect(new Set(codes.slice(0, readings.length))).toEqual(new Set([0, 66]));
  expect(new Set(codes.slice(readings.length))).toEqual(new Set([0, 1, 2, 66]));
});
