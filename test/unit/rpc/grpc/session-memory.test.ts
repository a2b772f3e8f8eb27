import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { compileCache } from '../../../support/compile-cache.ts';

/** Exit code and signal of a program of `test/support`, to which others send such headers. */
async function endOf(program: string, ...args: readonly string[]): Promise<unknown[]> {
  const path = fileURLToPath(new URL(`../../../support/${program}`, import.meta.url));
  const env = { ...process.env, ...compileCache };
  return once(spawn(process.execPath, ['--expose-gc', path, ...args], { stdio: 'ignore', env }), 'exit');
}

test.each([
  ['in the same iteration of the event loop', 'iteration'],
  ['after headers that were refused', 'refused'],
  ['after a session ended while it was writing', 'session'],
  ['after a stream ended while it was writing', 'stream'],
  ['if a server sends them to a client', 'client'],
])('headers that are refused or do not end do not end the process when V8 collects: %s', async (_name, kind) => {
  expect(await endOf('http2-broken-headers.ts', kind, 'kept')).toEqual([0, null]);
});

test.each([
  ['after it has closed its ports', 'stop', 0],
  ['at once, with its ports open', 'exit', 1],
])('headers that do not end leave a process its exit code when it ends %s', async (_name, how, code) => {
  expect(await endOf('http2-broken-stop.ts', how)).toEqual([code, null]);
});
