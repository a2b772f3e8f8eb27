import { spawn } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig } from '../../src/node/config.ts';
import { startEmbedded } from '../../src/node/embedded.ts';
import type { RunningNode } from '../../src/node/node-parts.ts';
import { createLog } from '../../src/runtime/telemetry/log.ts';
import { compileCache } from '../support/compile-cache.ts';
import { isNightly } from '../support/nightly.ts';
import { suiteDir } from '../support/running-node.ts';

/**
 * Runs the commands of the README, and behind its curl walk those of docs/api.md and docs/idempotency.md, on one node.
 */
const root = resolve(import.meta.dirname, '../..');
/** The blocks that are marked `<!-- run -->`, or with a name behind `run`. */
const blocksOf = (page: string, mark = 'run') =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/<!-- (run[a-z ]*) -->\n```sh\n([\s\S]*?)```/g)]
    .filter(([, found]) => found === mark)
    .map(([, , code = '']) => code);
const [words = '', ...walk] = blocksOf('README.md');
const next = blocksOf('README.md', 'run next');
const byCurl = [...blocksOf('README.md', 'run curl'), ...blocksOf('docs/api.md')];
const idempotencyBlocks = blocksOf('docs/idempotency.md');

const place = suiteDir();
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

afterAll(() => node?.stop());

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
      env: {
        ...process.env,
        ...compileCache,
        XDG_CONFIG_HOME: join(place, 'config'),
        BASE: `http://127.0.0.1:${node.http.port}`,
        HOOK_PORT: String(hookPort),
      },
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

/**
 * The most that the walk may take, in seconds of processor time: all nine commands, not the waiting for a busy
 * machine.
 */
const WALK_MAX_S = 10;
const timed = "times | tail -n 1 | sed 's/^/processor time of the walk: /'";

function expectWalked(out: string): void {
  const last = out.slice(out.indexOf('VALID'));
  expect(last).toMatch(
    /^VALID {2}everything was recomputed and verified: 4 events, 2 signatures, 2 seals, chain whole\n/,
  );
  expect(last).toMatch(/from the resolver at[\s\S]*! The service runs in development mode/);
  expect(out).toMatch(/^log +\S+\/ledgers\/\S+\nsize +4\nroot +\S+\nbefore +none was kept$/m);
}

test('the walk from nothing to a verified event ends well, and what follows it finds a change and delivers an event', {
  timeout: 120_000,
}, async () => {
  const commands = walk.join('').match(/ledger-trust [a-z]/g) ?? [];
  expect(commands).toHaveLength(9);
  const { code, out, err } = await shell([words, slowListen, ...walk, timed, ...next].join('\n'));
  expect({ code, err }).toMatchObject({ code: 0 });
  expectWalked(out);
  const [, userMin, userS, sysMin, sysS] = out.match(/of the walk: (\d+)m([\d.]+)s (\d+)m([\d.]+)s/) ?? [];
  const seconds = (Number(userMin) + Number(sysMin)) * 60 + Number(userS) + Number(sysS);
  expect(seconds).toBeLessThan(WALK_MAX_S);
  expect(out).toMatch(/^INVALID[\s\S]*hash_mismatch[\s\S]*^found out, exit code 1$/m);
  expect(out).toMatch(/^delegate +\S+\n^role +AUDITOR$[\s\S]*^4 .* LEDGER_DELEGATION_GRANTED$/m);
  expect(out).toMatch(/SHIPMENT_DELIVERED[\s\S]*dock 7[\s\S]*^status +ended$/m);
  const metrics = await (await fetch(`http://127.0.0.1:${node.ops.port}/metrics`)).text();
  expect(metrics).toMatch(/^svc_webhook_attempts_total\{verdict="delivered"\} 1$/m);
  expect(metrics).not.toMatch(/^svc_webhook_attempts_total\{verdict="failed"\} [1-9]/m);
});

if (isNightly)
  test('the walk ends well again on the same node', { timeout: 120_000 }, async () => {
    const { code, out, err } = await shell([words, ...walk].join('\n'));
    expect({ code, err }).toMatchObject({ code: 0 });
    expectWalked(out);
  });

test('the same walk by curl, and the calls of the pages on the API and on idempotency, do what the pages say', {
  timeout: 120_000,
}, async () => {
  expect(byCurl).toHaveLength(8);
  expect(idempotencyBlocks).toHaveLength(6);
  const { code, out, err } = await shell([...byCurl, ...idempotencyBlocks].join('\n'));
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(out).toContain('"status":"recorded"');
  expect(out).toMatch(/^true\nVALID {2}everything was recomputed and verified: 4 events, 2 signatures, 2 seals/m);
  // Connect's JSON: names in camel case, 64-bit integers as strings.
  expect(out).toMatch(/\{"traceledgerMasterUuid":.*"eventType":"GOODS_COUNTED","status":"recorded".*"seq":"4"/);
  const [, retries = ''] = out.split('"eventType":"GOODS_COUNTED","status":"recorded"');
  expect(retries).toMatch(/idempotent-replayed: true\r?\none API key was made\nidempotency_key_reused\n/i);
  expect(retries).toMatch(/\nreserved_event_type\nrecorded\n1\nthe same event over Connect\n$/);
});

test('a step that fails would be noticed', async () => {
  expect((await shell('false\ntrue')).code).not.toBe(0);
});
