import { execFileSync } from 'node:child_process';
import { createHash, createPublicKey, verify } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { signerFromPrivateKey } from '../../src/client/signing/signing.ts';
import { authorityKeysOf, keysFromResolver } from '../../src/client/verify/key-source.ts';
import { verifyEvents } from '../../src/client/verify/verifying.ts';
import { readAuthorityKeys } from '../../src/service/authority/authority.ts';
import { openLmdb } from '../../src/store/lmdb/open.ts';
import { runToEnd } from '../support/node-process.ts';
import {
  append,
  entityRequest,
  eventsOf,
  newDevice,
  newMaster,
  newOrder,
  newParty,
  type Order,
  otherOrder,
} from '../support/parties.ts';
import { done, expectRefused, type Fields, rest, shape } from '../support/parties-rest.ts';
import { newKeyFile, productionSettings } from '../support/production-settings.ts';
import { runHere } from '../support/program-here.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';
import { expectPassed, storyWithoutWebhook } from '../support/sandbox-story.ts';
import { receiveWebhooks } from '../support/webhook-receiver.ts';

const CLI = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const root = suiteDir();

const env = productionSettings(root);
const first = env.AUTHORITY_KEY_FILE;
const second = newKeyFile(root, 'second.pem');
const publicKeyOf = (pem: string): Buffer =>
  createPublicKey(readFileSync(pem)).export({ type: 'spki', format: 'der' }).subarray(-32);

describe('production mode', () => {
  let node: RunningTestNode;
  beforeAll(async () => {
    node = await runNode({ env });
  });
  afterAll(() => node[Symbol.asyncDispose]());

  test('requires a signature for every call of an entity, and publishes a trust anchor of phase 2', async () => {
    const { base } = node;
    const bare = await newDevice(base);
    const keyed = await newDevice(base, { keyed: true });
    const path = '/v1/entities/root-ledger';
    expectRefused(await rest(base, 'POST', path, { headers: bare.headers }), 401, 'signature_required');
    expectRefused(await rest(base, 'POST', path, { headers: keyed.headers }), 401, 'signature_required');
    const made = await rest(base, 'POST', path, { headers: entityRequest(keyed, 'POST', path, '') });
    expect(made.status).toBe(200);
    const reading = `/v1/ledgers/${made.text('ledger_id')}/events`;
    expectRefused(await rest(base, 'GET', reading, { headers: keyed.headers }), 401, 'signature_required');
    expect((await rest(base, 'GET', reading, { headers: entityRequest(keyed, 'GET', reading, '') })).status).toBe(200);

    const anchor = await done(base, 'GET', '/.well-known/svc-authority');
    const public_key = publicKeyOf(first).toString('base64');
    const fingerprint = createHash('sha256').update(publicKeyOf(first)).digest('hex');
    expect(anchor.body).toEqual({
      id: 'svc:authority',
      algorithm: 'Ed25519',
      public_key,
      fingerprint,
      kid_namespace: 'svc:authority#key-<seq>',
      phase: '2',
      keys: [
        {
          kid: 'svc:authority#key-1',
          algorithm: 'Ed25519',
          public_key,
          fingerprint,
          valid_from: shape.time,
          valid_to: null,
        },
      ],
      log: {
        origin: 'ledger.example/v1',
        keys: [
          {
            public_key: publicKeyOf(env.LOG_KEY_FILE).toString('base64'),
            valid_from: shape.time,
            valid_to: null,
            endorsement: { kid: 'svc:authority#key-1', sig: expect.any(String) },
          },
        ],
        previous: [],
      },
    });
  });

  test('limits creating calls without a credential by address, and says when to retry', async () => {
    await using limiting = await runNode({
      env: { ...env, RATE_LIMIT_CREATE_PER_MINUTE: '1', RATE_LIMIT_CREATE_BURST: '5' },
    });
    const answers = [];
    for (let n = 0; n < 8; n += 1) answers.push(await rest(limiting.base, 'POST', '/v1/actors', { body: {} }));
    expect(answers.slice(0, 5).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const [limited] = answers.filter(({ status }) => status === 429);
    if (limited === undefined) throw new Error('nothing was limited');
    expectRefused(limited, 429, 'rate_limited');
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(limited.headers.get('ratelimit')).toBeTruthy();
    expect((await rest(limiting.base, 'GET', '/health')).status).toBe(200);
  });

  test('sends HSTS behind a TLS proxy, which development mode does not', async () => {
    for (const path of ['/health', '/openapi.json', '/v1/nothing'])
      expect((await fetch(node.base + path)).headers.get('strict-transport-security')).toBe('max-age=31536000');
    await using trial = await runNode({ env: { TLS_TERMINATED: '1' } });
    expect((await fetch(`${trial.base}/health`)).headers.get('strict-transport-security')).toBeNull();
  });

  test('accepts webhooks with https targets at public addresses only', async () => {
    await using receiver = await receiveWebhooks();
    const by = await newParty(node.base);
    const [loopback, mapped] = ['https://0x7f000001/', 'https://[::ffff:127.0.0.1]/'];
    for (const url of [receiver.url, 'https://127.0.0.1/', loopback, 'https://localhost/', mapped])
      expectRefused(await rest(node.base, 'POST', '/v1/webhooks', by, { url }), 400, 'invalid_argument');
    await done(node.base, 'POST', '/v1/webhooks', by, { url: 'https://hooks.example/ledger' });
    expect(receiver.connections()).toBe(0);
  });

  test('skips the webhook of the sandbox run and says so', async () => {
    expectPassed(await (await fetch(`${node.base}/v1/sandbox/run`)).text(), storyWithoutWebhook);
  });
});

test('both ports speak TLS with a configured certificate', async () => {
  const [certFile, keyFile] = [join(root, 'cert.pem'), join(root, 'key.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  execFileSync('openssl', [...made, '-keyout', keyFile, '-out', certFile, ...subject], { stdio: 'ignore' });
  const { TLS_TERMINATED: _, ...rest } = env;
  await using node = await runNode({ env: { ...rest, TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } });
  const ca = readFileSync(certFile, 'utf8');
  const status = await new Promise((resolve, reject) => {
    request(`${node.base}/health`, { ca }, (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end();
  });
  expect(status).toBe(200);
  for (const transport of ['rest', 'grpc'] as const) {
    await using client = createClient({ baseUrl: node.base, grpcUrl: `https://${node.grpcAddress}`, transport, ca });
    expect(await client.getHealth()).toMatchObject({ status: 'ok' });
  }
  await using plain = createClient({ grpcUrl: `http://${node.grpcAddress}`, transport: 'grpc', attemptsMax: 1 });
  await expect(plain.getHealth()).rejects.toThrow();
  await expect(fetch(node.base.replace('https', 'http'))).rejects.toThrow();
});

/** The store alone shows it: the start of the second key is signed by the first, as anyone can compute. */
async function expectStartSigned(dataDir: string): Promise<void> {
  await using stores = await openLmdb({ dataDir, now: Date.now, onFatal: () => {} });
  const [one, two] = await readAuthorityKeys(stores.records);
  expect(one?.startSig).toBeNull();
  expect(two).toMatchObject({ kid: 'svc:authority#key-2', publicKey: publicKeyOf(second).toString('base64') });
  const start = JSON.stringify({ kid: two?.kid, public_key: two?.publicKey, valid_from: two?.validFrom });
  const signedBy = (pem: string, text: string) => {
    const digest = createHash('sha256').update(text).digest();
    return verify(null, digest, createPublicKey(readFileSync(pem)), Buffer.from(String(two?.startSig), 'base64'));
  };
  expect(signedBy(first, start)).toBe(true);
  expect(signedBy(second, start)).toBe(false);
  expect(signedBy(first, start.replace('#key-2', '#key-3'))).toBe(false);
}

describe('the data of a node', () => {
  const dataDir = suiteDir();
  const copy = join(root, 'copy');
  let order: Order;
  let before: Fields[];
  const cli = (...args: string[]) => runHere(args, { env: { ...env, DATA_DIR: dataDir } });

  beforeAll(async () => {
    await using node = await runNode({ env, dataDir });
    order = await newOrder(node.base);
    const master = await newMaster(order);
    for (let n = 0; n < 5; n += 1) await append(master, order.buyer, 'NOTED', { n });
    before = await eventsOf(node.base, order.buyer, order.ledgerId);
    // Of a node that is running.
    const backup = await runToEnd({ ...env, DATA_DIR: dataDir }, CLI, ['backup', copy]);
    expect(backup).toMatchObject({ code: 0, stderr: '' });
    expect(backup.stdout).toContain(copy);
    // While it runs its authority is not to be changed.
    const early = await runToEnd({ ...env, DATA_DIR: dataDir }, CLI, ['authority', 'rotate', second]);
    expect(early).toMatchObject({ code: 1, stdout: '' });
    expect(early.stderr).toMatch(/^ledger-trust: [^\n]+\n$/);
  });

  test('back up to a new data directory, which is not overwritten', async () => {
    await using node = await runNode({ env, dataDir: copy });
    expect(await eventsOf(node.base, order.buyer, order.ledgerId, '&verify=signatures')).toEqual(before);
    expect(existsSync(join(copy, 'authority.pem'))).toBe(false);
    const again = await cli('backup', copy);
    expect(again).toMatchObject({ code: 1, out: '' });
    expect(again.err).toMatch(/^ledger-trust: [^\n]+\n$/);
  });

  test('keep their old seals after a rotation, and the old key signs the start of the new one', async () => {
    for (const wrong of ['/no/key.pem', env.SECRETS_KEY_FILE]) {
      const refused = await cli('authority', 'rotate', wrong);
      expect(refused).toMatchObject({ code: 66, out: '' });
      expect(refused.err).toMatch(new RegExp(`^ledger-trust: ${wrong} must be [^\\n]+\\n$`));
    }
    const rotated = await cli('authority', 'rotate', second);
    expect(rotated).toMatchObject({ code: 0, err: '' });
    // Again, as after a crash: nothing more happens.
    expect((await cli('authority', 'rotate', second)).out).toBe(rotated.out);
    await expectStartSigned(dataDir);
    await expect(runNode({ env, dataDir })).rejects.toThrow(/AUTHORITY_KEY_FILE|authority/);

    await using node = await runNode({ env: { ...env, AUTHORITY_KEY_FILE: second }, dataDir });
    const anchor = await done(node.base, 'GET', '/.well-known/svc-authority');
    const keys = anchor.rows('keys');
    expect(anchor.body.public_key).toBe(publicKeyOf(second).toString('base64'));
    expect(keys.map(({ kid, valid_to }) => [kid, valid_to])).toEqual([
      ['svc:authority#key-1', keys[1]?.valid_from],
      ['svc:authority#key-2', null],
    ]);
    const { ledgerId: freshId } = await otherOrder({ ...order, base: node.base });
    const fresh = await eventsOf(node.base, order.buyer, freshId, '&verify=signatures');
    expect(fresh.map((event) => event.authority_key_id)).toEqual(['svc:authority#key-2', 'svc:authority#key-2']);
    expect(await eventsOf(node.base, order.buyer, order.ledgerId, '&verify=signatures')).toEqual(before);

    // By anyone, with the public key alone.
    for (const [event, key] of [
      [before[0], first],
      [fresh[0], second],
    ] as const) {
      const digest = createHash('sha256')
        .update('svc-authority-v1\0')
        .update(Buffer.from(String(event?.hash), 'hex'))
        .digest();
      const good = verify(
        null,
        digest,
        createPublicKey(readFileSync(key)),
        Buffer.from(String(event?.authority_sig), 'base64'),
      );
      expect(good).toBe(true);
    }
    await using client = createClient({
      baseUrl: node.base,
      apiKey: order.buyer.apiKey,
      signer: signerFromPrivateKey(order.buyer.key.privateKey, order.buyer.kid ?? ''),
    });
    const authorityKeys = authorityKeysOf(await client.getAuthority());
    for (const ledgerId of [order.ledgerId, freshId]) {
      const events = await Array.fromAsync(client.ledgerEvents(ledgerId));
      const found = await verifyEvents(events, {
        keys: keysFromResolver(client),
        authorityKeys,
        trustedKeys: 'all',
        kind: 'ledger',
        checkpoint: await client.checkpoint(ledgerId),
      });
      expect([found.verdict, found.issues]).toEqual(['valid', []]);
    }
  });
});
