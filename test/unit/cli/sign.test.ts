import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { publicKeyBase64 } from '../../../src/client/signing/signing.ts';
import { ed25519Key } from '../../../src/domain/keys/key-object.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';
import { vectors } from '../../support/vectors.ts';

const { dir, run, file } = newShell();
const ledgerId = '0193a000-0000-7000-8000-000000000001';
const actorId = '0193a000-0000-7000-8000-00000000000a';

describe('keygen', () => {
  it('writes a private key that only its owner can read, and prints the public one', async () => {
    const path = join(dir, 'new.pem');
    const { code, out, err } = await run(['keygen', '--out', path]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(ed25519Key(readFileSync(path, 'utf8')).asymmetricKeyType).toBe('ed25519');
    expect(out).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
    expect(await runHere(['keygen', '--from', path])).toEqual({ code: 0, out, err: '' });
  });

  it('shows JSON with the file, or with the private key where there is none', async () => {
    const path = join(dir, 'shown.pem');
    const made = JSON.parse((await runHere(['keygen', '--json', '--out', path])).out) as Record<string, string>;
    expect(made).toEqual({ public_key: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/), file: path });
    const shown = await runHere(['keygen', '--json', '--from', path]);
    expect(JSON.parse(shown.out)).toEqual({ public_key: made.public_key });
    const alone = JSON.parse((await runHere(['keygen', '--json'])).out) as Record<string, string>;
    expect(Object.keys(alone)).toEqual(['public_key', 'private_key_pem']);
    expect(publicKeyBase64(ed25519Key(alone.private_key_pem ?? ''))).toBe(alone.public_key);
  });

  it('never overwrites a file', async () => {
    const path = file('precious.pem', 'precious');
    const { code, err } = await runHere(['keygen', '--out', path]);
    expect({ code, err }).toEqual({ code: 74, err: `ledger-trust: ${path} cannot be written: it exists already.\n` });
    expect(readFileSync(path, 'utf8')).toBe('precious');
  });

  it('prints the private key to stdout and the public one to stderr without a file', async () => {
    const { code, out, err } = await runHere(['keygen']);
    expect(code).toBe(0);
    expect(ed25519Key(out).type).toBe('private');
    expect(err).toMatch(/^public key: [A-Za-z0-9+/]{43}=\n$/);
  });
});

describe('sign', () => {
  const pem = ed25519Key(Buffer.from(vectors.keys.supplier.seed_hex, 'hex')).export({ format: 'pem', type: 'pkcs8' });
  const key = file('supplier.pem', pem.toString());
  const escapedNote = 'Some characters of the canonical JSON are shown escaped: --json has the exact text.\n';
  /** Signs with the key of the supplier. `words`: the options, separated by spaces. */
  const sign = (words: string, input = '{}') => runHere(['sign', '--key', key, ...words.split(' ')], { input });

  it('signs the vectors, from a file and from stdin', async () => {
    for (const [index, vector] of vectors.signatures.slice(1, 3).entries()) {
      const payload = index === 0 ? file('payload.json', vector.sig_payload) : '-';
      const words = `--event-type ${vector.event_type} --ledger-id ${vector.ledger_id} --payload ${payload}`;
      const args = ['sign', '--key', key, ...words.split(' ')];
      const canonical = vector.canonical_json.replace('\u2028', '\\u2028').replace('\u0080', '\\u0080');
      expect(await runHere(args, { input: JSON.stringify(vector.sig_payload) })).toEqual({
        code: 0,
        err: canonical === vector.canonical_json ? '' : escapedNote,
        out: `canonical  ${canonical}\ndigest     ${vector.digest_hex}\nsignature  ${vector.signature_base64}\n`,
      });
    }
  });

  it('shows JSON with the headers to send', async () => {
    const [vector] = vectors.signatures;
    if (vector === undefined) throw new Error('there is no vector');
    const words = `--event-type ${vector.event_type} --ledger-id ${vector.ledger_id} --payload - --key-id ${vectors.kid}`;
    const { out } = await sign(`--json ${words}`, JSON.stringify(vector.sig_payload));
    expect(JSON.parse(out)).toMatchObject({
      digest: vector.digest_hex,
      headers: { 'X-Actor-Sig': vector.signature_base64, 'X-Signing-Key-ID': vectors.kid },
    });
  });

  it('escapes what moves the cursor or changes the direction, and says where the text is exact', async () => {
    const payload = JSON.stringify({ a: '\u202e1\u009b2K\u2028' });
    const words = `--event-type A --ledger-id ${ledgerId} --payload -`;
    const plain = await sign(words, payload);
    const json = await sign(`${words} --json`, payload);
    for (const { out } of [plain, json]) expect(out).not.toMatch(/[\p{Bidi_Control}\p{Zl}\u009b]/u);
    expect(plain.out).toContain(String.raw`canonical  {"a":"\u202e1\u009b2K\u2028"}`);
    expect(plain.err).toBe(escapedNote);
    expect(json.err).toBe('');
    expect(JSON.parse(json.out)).toMatchObject({ canonical_json: payload });
  });

  it('signs an entity request', async () => {
    const path = '/v1/entities/root-ledger';
    const words = `--json --entity-request --actor-id ${actorId} --method POST --path ${path}`;
    const { code, out } = await sign(`${words} --timestamp 2026-11-21T02:06:39.000Z`);
    expect(code).toBe(0);
    const shown = JSON.parse(out) as { canonical_json: string };
    expect(shown).toMatchObject({
      event_type: 'ENTITY_REQUEST',
      ledger_id: actorId,
      headers: { 'X-Timestamp': '2026-11-21T02:06:39.000Z' },
    });
    expect(JSON.parse(shown.canonical_json)).toMatchObject({ method: 'POST', path });
  });

  it.each([
    ['a member given twice', '{"a":1,"a":2}'],
    ['a number that would change', '{"a":9007199254740993}'],
    ['a list', '[1]'],
    ['no JSON', '{'],
  ])('refuses %s with one sentence', async (_, payload) => {
    const { code, out, err } = await sign(`--event-type A --ledger-id ${ledgerId} --payload -`, payload);
    expect({ code, out }).toEqual({ code: 66, out: '' });
    expect(err).toMatch(/^ledger-trust: stdin holds no payload: [^\n]+\n$/);
  });

  it.each([
    ['a ledger id that is none', '--event-type A --ledger-id nope', '--ledger-id must be a UUID'],
    ['an event type that is none', `--event-type a/b --ledger-id ${ledgerId}`, '--event-type must be a letter'],
    ['no ledger id', '--event-type A', '--ledger-id is needed'],
    ['a key id that is none', `--event-type A --ledger-id ${ledgerId} --key-id key-1`, '--key-id must be svc:'],
    ['an actor id that is none', '--entity-request --actor-id nope', '--actor-id must be a UUID'],
    [
      'a time that is none',
      `--entity-request --actor-id ${actorId} --method GET --path /v1 --timestamp now`,
      '--timestamp must be an RFC 3339 time',
    ],
  ])('does not sign with %s', async (_, words, sentence) => {
    const err = expect.stringContaining(`Option ${sentence}`);
    expect(await sign(`--payload - ${words}`)).toEqual({ code: 64, out: '', err });
  });

  it('refuses a file without a private key, and does not print its content', async () => {
    const words = `--event-type A --ledger-id ${ledgerId} --payload - --key ${file('secret.txt', 'hunter2')}`;
    const { code, err } = await sign(words);
    expect(code).toBe(66);
    expect(err).not.toContain('hunter2');
  });
});
