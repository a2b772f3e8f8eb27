import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { createServer } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { actor, authority, events, exported } from '../../support/export-of-vectors.ts';
import { forgedLedger } from '../../support/forged-events.ts';
import { onLoopback } from '../../support/loopback.ts';
import { runHere } from '../../support/program-here.ts';
import { cliMain, newShell } from '../../support/shell.ts';

const { file } = newShell();
const whole = { kind: 'ledger' };
const honest = () => file('honest.jsonl', exported(events, whole));
const keysFile = file('keys.json', actor);
const authorityFile = file('authority.json', authority);

const forger = forgedLedger();
const [actorKey] = actor.keys;
const forgedActor = { ...actor, keys: [{ ...actorKey, public_key: forger.supplier }] };
const forgedAuthority = { ...authority, keys: authority.keys.map((key) => ({ ...key, public_key: forger.authority })) };
const forged = () =>
  file('forged.jsonl', exported(forger.json, whole, {}, { actor: forgedActor, authority: forgedAuthority }));

/** The resolver of the true service. */
const service = createServer((request, response) => {
  const document = request.url?.includes('svc-authority') ? authority : actor;
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
});
const resolver = ['--resolver', `http://127.0.0.1:${await onLoopback(service)}`];
afterAll(() => void service.close());

const verdict = async (...args: string[]) => {
  const { code, out } = await runHere(['verify', ...args]);
  return { code, first: out.split('\n')[0] };
};

describe('an export in which a forger replaced every key, amount, hash and signature', () => {
  it('is incomplete under its own keys, which the first line says', async () => {
    const found = await verdict(forged());
    expect(found).toEqual({
      code: 2,
      first:
        'INCOMPLETE  9 events, 7 signatures, 3 seals, chain whole; not verified: whose keys these are (give --resolver URL)',
    });
  });

  it('is invalid under the keys of the honest service', async () => {
    expect(await verdict(forged(), ...resolver)).toEqual({ code: 1, first: 'INVALID  10 problems' });
    expect((await verdict(forged(), '--keys', keysFile, '--authority', authorityFile)).code).toBe(1);
  });

  it('is valid only with --trust-file-keys', async () => {
    expect((await verdict(forged(), '--trust-file-keys')).code).toBe(0);
  });

  it('is incomplete in the JSON output too', async () => {
    const { code, out } = await runHere(['verify', forged(), '--json']);
    expect(code).toBe(2);
    expect(JSON.parse(out)).toMatchObject({
      verdict: 'incomplete',
      verified: false,
      issues: [],
      incomplete: [
        { type: 'authority_keys_untrusted', count: 3 },
        { type: 'actor_keys_untrusted', count: 7 },
      ],
      keys_from: 'from the file itself',
    });
  });
});

describe('an honest export', () => {
  it('is valid under keys from the resolver or from other files', async () => {
    expect((await verdict(honest(), ...resolver)).code).toBe(0);
    expect((await verdict(honest(), '--keys', keysFile, '--authority', authorityFile)).code).toBe(0);
  });

  it('is incomplete if only some keys are from elsewhere', async () => {
    const { code, out } = await runHere(['verify', honest(), '--keys', keysFile]);
    expect([code, out.includes('authority_keys_untrusted'), out.includes('actor_keys_untrusted')]).toEqual([
      2,
      true,
      false,
    ]);
    const other = await runHere(['verify', honest(), '--authority', authorityFile]);
    expect([other.code, other.out.includes('actor_keys_untrusted')]).toEqual([2, true]);
  });

  it('is incomplete if its own file is named as the file of keys', async () => {
    const path = honest();
    expect((await verdict(path, '--keys', path, '--authority', authorityFile)).code).toBe(2);
  });

  it.each(['/dev/stdin', '/proc/self/fd/0', honest()])(
    'is incomplete as stdin if %s is named as the file of keys',
    (keys) => {
      const args = [cliMain, 'verify', '-', '--keys', keys, '--authority', authorityFile];
      const stdio = [openSync(honest(), 'r'), 'pipe', 'pipe'] as const;
      const { status, stdout } = spawnSync(process.execPath, args, { stdio: [...stdio], encoding: 'utf8' });
      expect([status, stdout]).toEqual([2, expect.stringContaining('actor_keys_untrusted')]);
    },
  );

  it('is refused with --resolver and --trust-file-keys together', async () => {
    expect((await verdict(honest(), '--trust-file-keys', ...resolver)).code).toBe(64);
  });
});
