import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventToJson } from '../../../src/client/call/answer-encoding.ts';
import { actor, authority, events, exported } from '../../support/export-of-vectors.ts';
import { forgedLedger } from '../../support/forged-events.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';
import { at, changed, resealed } from '../../support/vector-chain.ts';

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
let resolver: string[];
beforeAll(async () => {
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  resolver = ['--resolver', `http://127.0.0.1:${(service.address() as AddressInfo).port}`];
});
afterAll(() => void service.close());

const verdict = async (...args: string[]) => {
  const { code, out } = await runHere(['verify', ...args]);
  return { code, first: out.split('\n')[0] };
};

describe('an export in which a forger replaced every key, amount, hash and signature', () => {
  it('is never valid by its own keys, and the first line says what is not verified', async () => {
    const found = await verdict(forged());
    expect(found).toEqual({
      code: 2,
      first:
        'INCOMPLETE  9 events, 7 signatures, 3 seals, chain whole; not verified: whose keys these are (give --resolver URL)',
    });
  });

  it('is invalid under the keys of the true service', async () => {
    expect(await verdict(forged(), ...resolver)).toEqual({ code: 1, first: 'INVALID  10 things are wrong' });
    expect((await verdict(forged(), '--keys', keysFile, '--authority', authorityFile)).code).toBe(1);
  });

  it('is valid only for who says that the keys of the file are to be trusted', async () => {
    expect((await verdict(forged(), '--trust-file-keys')).code).toBe(0);
  });

  it('tells the machine the same', async () => {
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
  it('is valid under keys from the resolver, or from other files', async () => {
    expect((await verdict(honest(), ...resolver)).code).toBe(0);
    expect((await verdict(honest(), '--keys', keysFile, '--authority', authorityFile)).code).toBe(0);
  });

  it('is incomplete where only some keys are from elsewhere', async () => {
    const { code, out } = await runHere(['verify', honest(), '--keys', keysFile]);
    expect([code, out.includes('authority_keys_untrusted'), out.includes('actor_keys_untrusted')]).toEqual([
      2,
      true,
      false,
    ]);
    const other = await runHere(['verify', honest(), '--authority', authorityFile]);
    expect([other.code, other.out.includes('actor_keys_untrusted')]).toEqual([2, true]);
  });

  it('is incomplete where the file under test is named as the file of keys', async () => {
    const path = honest();
    expect((await verdict(path, '--keys', path, '--authority', authorityFile)).code).toBe(2);
  });

  it('cannot be verified by a resolver and by its own keys at once', async () => {
    expect((await verdict(honest(), '--trust-file-keys', ...resolver)).code).toBe(64);
  });
});

describe('a whole export', () => {
  it('in which a stranger writes is invalid, though every hash and seal is right', async () => {
    const stranger = '0193a000-0000-7000-8000-0000000000ff';
    const unsigned = { actorSig: null, signingKeyId: null, authorityKeyId: 'svc:authority#key-1' };
    const list = resealed(changed(4, { ...unsigned, actorId: stranger }), 4).map((event) =>
      JSON.parse(eventToJson(event)),
    );
    const { code, out } = await runHere(['verify', file('stranger.jsonl', exported(list, whole)), ...resolver]);
    expect(code).toBe(1);
    expect(out).toContain(`✗ not_permitted  event ${at(4).id}: actor ${stranger} was no party and held no grant at`);
  });
});
