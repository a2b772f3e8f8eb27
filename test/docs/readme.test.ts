import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig } from '../../src/node/config.ts';
import { startEmbedded } from '../../src/node/embedded.ts';
import type { RunningNode } from '../../src/node/node-parts.ts';
import { createLog } from '../../src/runtime/telemetry/log.ts';
import { compileCache } from '../support/compile-cache.ts';

/** Runs the commands of the README, and behind them those of docs/api.md and docs/idempotency.md, on one node. */
const root = resolve(import.meta.dirname, '../..');
const blocksOf = (page: string) =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/<!-- run -->\n```sh\n([\s\S]*?)```/g)].map(
    ([, code]) => code ?? '',
  );
const blocks = blocksOf('README.md');
const apiBlocks = blocksOf('docs/api.md');
const idempotencyBlocks = blocksOf('docs/idempotency.md');

const place = mkdtempSync(join(tmpdir(), 'readme-'));
let node: RunningNode;
let hookPort: number;

beforeAll(async () => {
  const env = {
    DATA_DIR: join(place, 'data'),
    PORT: '0',
    GRPC_PORT: '0',
    OPS_PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'silent',
  };
  node = await startEmbedded(readConfig(env), createLog('silent'), () => {});
  hookPort = await freePort();
  for (const name of ['package.json', 'node_modules', 'src', 'cluster'])
    symlinkSync(join(root, name), join(place, name));
});

afterAll(async () => {
  await node?.stop();
  rmSync(place, { recursive: true, force: true });
});

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

function shell(script: string): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
  return new Promise((done) => {
    const bash = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: place,
      env: { ...process.env, ...compileCache, BASE: `http://127.0.0.1:${node.http.port}`, HOOK_PORT: String(hookPort) },
    });
    let out = '';
    let err = '';
    bash.stdout.on('data', (chunk) => {
      out += chunk;
    });
    bash.stderr.on('data', (chunk) => {
      err += chunk;
    });
    bash.on('close', (code) => done({ code, out, err }));
  });
}

/** `listen` on a machine that is so slow that what comes behind it would be over before it listens. */
const slowListen = `
eval "quick_$(declare -f ledger-trust)"
ledger-trust() { [ "$1" != listen ] || sleep 5; quick_ledger-trust "$@"; }
`;

test('the walk from nothing to a first signed, verified event does what the README says', {
  timeout: 120_000,
}, async () => {
  expect(blocks.length).toBeGreaterThan(6);
  const [words = '', ...steps] = blocks;
  const { code, out, err } = await shell([words, slowListen, ...steps, ...apiBlocks, ...idempotencyBlocks].join('\n'));
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(out).toContain('"status":"recorded"');
  expect(out).toMatch(/^true$/m);
  // A development node publishes no key of its authority, so that two seals stay unchecked; nothing else does.
  const first =
    'INCOMPLETE  4 events, 2 signatures, chain whole; not verified: seals, for lack of the keys of the authority';
  expect(out).toContain(first);
  expect(out).toMatch(
    /^INCOMPLETE[\s\S]*from the resolver at[\s\S]*2 of the events: no key of the authority[\s\S]*^exit code 2$/m,
  );
  expect(out).toMatch(/^INVALID[\s\S]*hash_mismatch[\s\S]*^found out, exit code 1$/m);
  expect(out).toMatch(/^true\n5\nrecorded\n[\s\S]*SHIPMENT_DELIVERED/m);
  // Connect's JSON: names in camel case, 64-bit integers as strings.
  expect(apiBlocks).toHaveLength(1);
  expect(out).toMatch(/\{"traceledgerMasterUuid":.*"eventType":"GOODS_COUNTED","status":"recorded".*"seq":"6"/);
  expect(idempotencyBlocks).toHaveLength(6);
  const [, retries = ''] = out.split('"eventType":"GOODS_COUNTED","status":"recorded"');
  expect(retries).toMatch(/idempotent-replayed: true\r?\none API key was made\nidempotency_key_reused\n/i);
  expect(retries).toMatch(/\nreserved_event_type\nrecorded\n1\nthe same event over Connect\n$/);
  const metrics = await (await fetch(`http://127.0.0.1:${node.ops.port}/metrics`)).text();
  expect(metrics).toMatch(/^svc_webhook_attempts_total\{verdict="delivered"\} 1$/m);
  expect(metrics).not.toMatch(/^svc_webhook_attempts_total\{verdict="failed"\} [1-9]/m);
});

test('a step that fails would be noticed', async () => {
  expect((await shell('false\ntrue')).code).not.toBe(0);
});
