import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { backendsForTests } from '../support/backends/for-tests.ts';
import { conformanceFolder, expectConformance } from '../support/conformance-kit.ts';
import { docker, mallocPackage } from './compose.ts';

const image = 'ledger-trust-test';
const hardened = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
let container = '';
let base = '';

beforeAll(async () => {
  await docker(['build', '--quiet', '--tag', image, '--build-arg', `MALLOC_PACKAGE=${await mallocPackage()}`, '.']);
  container = await docker(['run', '--detach', ...hardened, '--publish', '127.0.0.1:0:8080', image]);
  const [published = ''] = (await docker(['port', container, '8080'])).split('\n');
  base = `http://${published}`;
  await vi.waitFor(async () => expect((await fetch(`${base}/health`)).status).toBe(200), { timeout: 60_000 });
});

afterAll(async () => {
  await docker(['rm', '--force', '--volumes', container]);
  await docker(['rmi', image]);
});

test('the node runs on jemalloc where the base image can install it', async () => {
  const maps = await docker(['exec', container, 'cat', '/proc/1/maps']);
  expect(maps.includes('libjemalloc')).toBe((await mallocPackage()) !== '');
});

test('the image runs as a user that may write to its data alone', async () => {
  expect(await docker(['exec', container, 'id', '-un'])).toBe('node');
  const writable =
    'for place in / /app /etc /home/node /data; do (: > $place/x) 2>/dev/null && echo $place; done; true';
  expect(await docker(['exec', container, 'sh', '-c', writable])).toBe('/data');
});

test('nothing but what the service needs to run is in it', async () => {
  const inside = await docker(['exec', container, 'sh', '-c', 'ls /app /app/node_modules']);
  expect(inside).toContain('undici');
  for (const name of ['test', 'vitest', 'typescript', '.git', 'data']) expect(inside.split('\n')).not.toContain(name);
});

test('its description and documentation are in it', async () => {
  for (const path of ['/docs', '/openapi.json', '/v1/legal/terms']) {
    const answer = await fetch(`${base}${path}`);
    expect(answer.status, path).toBe(200);
    // Read to its end: a node that stops waits a second for clients that have not taken their answers yet.
    expect(await answer.text(), path).not.toBe('');
  }
});

test('it plays the whole story by itself', async () => {
  const story = await (await fetch(`${base}/v1/sandbox/run`)).text();
  expect(story.trim().split('\n').at(-1)).toMatch(/^[1-9]\d* passed, 0 failed$/);
});

test('the conformance kit passes against it, alone in a folder and without an environment', {
  timeout: 1_800_000,
}, async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-conformance-'));
  try {
    cpSync(conformanceFolder, folder, { recursive: true, filter: (path) => basename(path) !== '.cache' });
    const { PATH = '', HOME = '' } = process.env;
    await expectConformance(context, { url: base, folder, env: { PATH, HOME } });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('it stops in a second, cleanly', async () => {
  const begun = Date.now();
  await docker(['stop', container]);
  // Not counted: what Docker itself has to do once the service has ended.
  const ended = Date.parse(await docker(['inspect', '--format', '{{.State.FinishedAt}}', container]));
  expect(ended - begun).toBeGreaterThan(0);
  expect(ended - begun).toBeLessThan(1_000);
  expect(await docker(['inspect', '--format', '{{.State.ExitCode}}', container])).toBe('0');
});

test('without its data it says so in a sentence', async () => {
  const run = docker(['run', '--rm', ...hardened, '--env', 'DATA_DIR=/nowhere', image]);
  await expect(run).rejects.toThrow(/ledger-trust: [^\n]*DATA_DIR[^\n]*\n?$/);
});

test('the backends of this run are containers', async () => {
  const backends = backendsForTests();
  expect(await backends.redis()).toMatchObject({ kind: 'there', from: 'a container' });
  expect(await backends.cassandra()).toMatchObject({ kind: 'there', from: 'a container' });
});
