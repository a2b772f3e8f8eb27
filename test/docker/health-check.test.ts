import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { onLoopback } from '../support/loopback.ts';

// What the engine runs in the container, run here: it needs no engine to be asked.
const dockerfile = readFileSync(join(import.meta.dirname, '../../Dockerfile'), 'utf8').replaceAll('\\\n', '');
const [, command = '[]'] = /^HEALTHCHECK .*CMD (\[.*\])$/m.exec(dockerfile) ?? [];
const [, ...args] = JSON.parse(command) as string[];

let status = 200;
const asked: (string | undefined)[] = [];
const server = createServer((request, response) => {
  asked.push(request.url);
  response.writeHead(status).end();
});
const port = await onLoopback(server);
afterAll(() => new Promise<unknown>((resolve) => void server.close(resolve)));

/** The exit code: 0 is healthy. */
function check(env: (port: string) => Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, { env: env(String(port)) }, () => resolve(child.exitCode ?? -1));
  });
}

test.each([
  ['the node of a cluster', (port: string) => ({ INTERNAL_PORT: port })],
  ['a node that stands alone', (port: string) => ({ OPS_PORT: port })],
  ['one where a variable is there and empty', (port: string) => ({ INTERNAL_PORT: '', OPS_PORT: port })],
])('the image asks %s at the port that it was told', async (_, env) => {
  status = 200;
  expect(await check(env)).toBe(0);
  expect(asked.at(-1)).toBe('/health/ready');
  status = 503;
  expect(await check(env)).toBe(1);
});

test('where nobody answers it is not healthy', async () => {
  expect(await check(() => ({ OPS_PORT: '1' }))).toBe(1);
});
