import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Watermarks, type WatermarksOptions } from '../../../../src/client/index.ts';
import { formatVkey } from '../../../../src/domain/log/log-key.ts';
import { ledgerId } from '../../../support/export-of-vectors.ts';
import { identityPoint } from '../../../support/nonce-zero.ts';
import {
  type Lies,
  ledgerOrigin,
  logKey,
  masterId,
  masterOrigin,
  otherKey,
  provingService,
} from '../../../support/proving-service.ts';
import { suiteDir } from '../../../support/running-node.ts';

const dir = suiteDir();
let files = 0;
const newFile = () => join(dir, `state-${files++}.json`);
const base64 = ({ publicKey }: { readonly publicKey: Buffer }) => publicKey.toString('base64');

/** Another process with the same file, which looks at a service that lies as `lie` says. */
async function look(file: string, lie: Partial<Lies> = {}, options: WatermarksOptions = {}) {
  const { client, lies } = await provingService({ watermarks: new Watermarks(file, options) });
  Object.assign(lies, lie);
  try {
    return (await client.checkpoint(ledgerId)).size;
  } catch (error) {
    return error && typeof error === 'object' && 'reason' in error ? error.reason : error;
  }
}

test('the file holds name, keys and notes, is for its owner alone, and no other file is left', async () => {
  const file = newFile();
  expect(await look(file, { newest: 7 })).toBe(7);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    format: 'ledger-trust-watermarks/1',
    origin: 'ledger.example/v1',
    log_keys: [base64(logKey)],
    authority_keys: [expect.stringMatching(/=$/)],
    checkpoints: { [ledgerOrigin]: expect.stringContaining(`${ledgerOrigin}\n7\n`) },
    previous: [],
  });
  expect(readdirSync(dir)).toEqual([file.slice(dir.length + 1)]);
});

test('a file that would be larger than is read is not written, and the old one stays', async () => {
  const file = newFile();
  await look(file);
  const before = readFileSync(file, 'utf8');
  const watermarks = new Watermarks(file);
  const checkpoints = new Map([['x', 'y'.repeat(2 ** 26)]]);
  const update = watermarks.update((state) => state && { ...state, checkpoints });
  const sentence = 'cannot be written: it would be larger than 64 MiB: keep some of the logs in another file';
  await expect(update).rejects.toThrow(`${file} ${sentence}`);
  expect(readFileSync(file, 'utf8')).toBe(before);
});

test('what one process keeps, the next one compares with', async () => {
  const file = newFile();
  expect(await look(file, { newest: 7 })).toBe(7);
  expect(await look(file, { newest: 6 })).toBe('checkpoint_behind');
  const before = readFileSync(file, 'utf8');
  expect(await look(file, { rewrittenAt: 2 })).toBe('checkpoints_contradict');
  // What was refused is not kept.
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(await look(file)).toBe(9);
});

test('the notes of all logs stay', async () => {
  const file = newFile();
  const { client } = await provingService({ watermarks: new Watermarks(file) });
  await Promise.all([client.checkpoint(ledgerId), client.masterCheckpoint(masterId)]);
  expect(Object.keys(JSON.parse(readFileSync(file, 'utf8')).checkpoints).sort()).toEqual([ledgerOrigin, masterOrigin]);
});

test('two clients that share the watermarks keep the larger checkpoint', async () => {
  const file = newFile();
  const watermarks = new Watermarks(file);
  const clients = await Promise.all(
    [5, 8, 6].map(async (size) => {
      const service = await provingService({ watermarks });
      service.lies.newest = size;
      return service.client;
    }),
  );
  const sizes = await Promise.all(clients.map(async (client) => (await client.checkpoint(ledgerId)).size));
  expect(sizes).toEqual([5, 8, 6]);
  expect(readFileSync(file, 'utf8')).toContain(`${ledgerOrigin}\\n8\\n`);
});

test('keys that the user gives come in place of the published ones, also as a vkey', async () => {
  for (const key of [
    base64(logKey),
    formatVkey(ledgerOrigin, logKey.publicKey),
    formatVkey('ledger.example/v1', logKey.publicKey),
  ])
    expect(await look(newFile(), { newest: 9 }, { logKeys: [key] })).toBe(9);
  expect(await look(newFile(), { newest: 9 }, { logKeys: [base64(otherKey)] })).toBe('unknown_log_key');
  const ofOther = formatVkey(`other.example/ledgers/${ledgerId}`, logKey.publicKey);
  expect(await look(newFile(), { newest: 9 }, { logKeys: [ofOther] })).toBe('wrong_origin');
});

test('a key that nobody has endorsed is accepted when the user gives it, and stays accepted', async () => {
  const file = newFile();
  const rotated = { hasAuthority: false, keys: [logKey, otherKey] };
  expect(await look(file, { hasAuthority: false, newest: 5 })).toBe(5);
  expect(await look(file, rotated)).toBe('unknown_log_key');
  expect(await look(file, rotated, { logKeys: [base64(otherKey)] })).toBe(9);
  expect(await look(file, rotated)).toBe(9);
  expect(JSON.parse(readFileSync(file, 'utf8')).log_keys).toEqual([base64(logKey), base64(otherKey)]);
});

test('beside a key that the user gives at first, the authority of the same look vouches for no other key', async () => {
  const file = newFile();
  // Who stands between endorses all keys by one of their own, that of the user too.
  const between = { endorsedBy: otherKey, authority: otherKey };
  expect(await look(file, { ...between, newest: 5 }, { logKeys: [base64(logKey)] })).toBe(5);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ log_keys: [base64(logKey)], authority_keys: [] });
  const rotated = { ...between, keys: [logKey, otherKey] };
  for (const options of [{}, { logKeys: [base64(logKey)] }])
    expect(await look(file, rotated, options)).toBe('unknown_log_key');
  expect(await look(file, rotated, { logKeys: [base64(otherKey)] })).toBe(9);
});

test('under another name, where no authority is pinned, only the keys from before and those of the user count', async () => {
  const file = newFile();
  const newOrigin = 'ledger.example/v1-2027';
  expect(await look(file, {}, { logKeys: [base64(logKey)] })).toBe(9);
  expect(await look(file, { ...renamed, keys: [otherKey] }, { newOrigin })).toBe('unknown_log_key');
  expect(await look(file, { ...renamed, keys: [logKey, otherKey] }, { newOrigin })).toBe('unknown_log_key');
  expect(await look(file, renamed, { newOrigin })).toBe(4);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ log_keys: [base64(logKey)], authority_keys: [] });
});

test('an endorsed key is kept', async () => {
  const file = newFile();
  expect(await look(file, { newest: 5 })).toBe(5);
  expect(await look(file, { keys: [logKey, otherKey] })).toBe(9);
  expect(JSON.parse(readFileSync(file, 'utf8')).log_keys).toEqual([base64(logKey), base64(otherKey)]);
});

const renamed = { serviceName: 'ledger.example/v1-2027', newest: 4 };

test('another name is accepted only where the user names it, and what was kept before stays', async () => {
  const file = newFile();
  expect(await look(file)).toBe(9);
  expect(await look(file, renamed)).toBe('origin_changed');
  expect(await look(file, renamed, { newOrigin: 'ledger.example/v1-2028' })).toBe('origin_changed');
  expect(await look(file, { newest: 9 }, { newOrigin: 'ledger.example/v1-2027' })).toBe('origin_changed');
  expect(await look(file, renamed, { newOrigin: 'ledger.example/v1-2027' })).toBe(4);
  expect(await look(file, renamed, { newOrigin: 'ledger.example/v1-2027' })).toBe(4);
  expect(await look(file, renamed)).toBe(4);
  const state = JSON.parse(readFileSync(file, 'utf8'));
  expect(state).toMatchObject({ origin: 'ledger.example/v1-2027', log_keys: [base64(logKey)] });
  expect(state.previous).toEqual([
    { origin: 'ledger.example/v1', log_keys: [base64(logKey)], checkpoints: { [ledgerOrigin]: expect.any(String) } },
  ]);
  // Back to a name that was given up: the old checkpoints of it would not count.
  expect(await look(file, { newest: 9 }, { newOrigin: 'ledger.example/v1' })).toBe('origin_changed');
});

test('under another name a key is accepted if the pinned authority has endorsed it, or the user gives it', async () => {
  const stolen = { ...renamed, keys: [otherKey] };
  const forged = { ...stolen, endorsedBy: otherKey };
  const newOrigin = 'ledger.example/v1-2027';
  const [one, other] = [newFile(), newFile()];
  for (const file of [one, other]) expect(await look(file)).toBe(9);
  expect(await look(one, forged, { newOrigin })).toBe('unknown_log_key');
  expect(await look(one, stolen, { newOrigin })).toBe(4);
  expect(await look(other, forged, { newOrigin, logKeys: [base64(otherKey)] })).toBe(4);
  expect(JSON.parse(readFileSync(one, 'utf8')).log_keys).toEqual([base64(otherKey)]);
});

test.each([
  ['no JSON', 'x'],
  ['another format', '{"format":"other"}'],
  ['a member too many', (good: object) => ({ ...good, more: 1 })],
  [
    'a log key that is the identity point',
    (good: object) => ({ ...good, log_keys: [identityPoint.toString('base64')] }),
  ],
  ['a key of the authority that is none', (good: object) => ({ ...good, authority_keys: ['AAAA'] })],
  [
    'a log of another service',
    (good: object) => ({ ...good, checkpoints: { [`other.example/ledgers/${ledgerId}`]: '' } }),
  ],
  ['no name of a service', (good: object) => ({ ...good, origin: 'LEDGER' })],
  ['no list of names before', (good: object) => ({ ...good, previous: null })],
])('a file with %s is refused, and stays', async (_what, change) => {
  const file = newFile();
  await look(file);
  const content = typeof change === 'string' ? change : JSON.stringify(change(JSON.parse(readFileSync(file, 'utf8'))));
  writeFileSync(file, content);
  expect(await look(file)).toMatchObject({ code: 'invalid_answer' });
  expect(readFileSync(file, 'utf8')).toBe(content);
});

test('a kept note that was changed in the file is refused', async () => {
  const file = newFile();
  await look(file, { newest: 6 });
  writeFileSync(file, readFileSync(file, 'utf8').replace('\\n6\\n', '\\n2\\n'));
  expect(await look(file)).toBe('invalid_signature');
});

test('a key and a name that cannot be are refused at once', () => {
  expect(() => new Watermarks('x', { logKeys: ['AAAA'] })).toThrow(TypeError);
  expect(() => new Watermarks('x', { newOrigin: 'https://ledger.example' })).toThrow(TypeError);
});
