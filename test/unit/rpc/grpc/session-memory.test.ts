import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { compileCache } from '../../../support/compile-cache.ts';

const program = fileURLToPath(new URL('../../../support/http2-broken-headers.ts', import.meta.url));

/** Exit code and signal of a process to which others send such headers. */
async function endOf(kind: string): Promise<unknown[]> {
  const args = ['--expose-gc', program, kind, 'kept'];
  const child = spawn(process.execPath, args, { stdio: 'ignore', env: { ...process.env, ...compileCache } });
  return once(child, 'exit');
}

test.each([
  ['in the same iteration of the event loop', 'iteration'],
  ['after headers that were refused', 'refused'],
  ['after a session ended while it was writing', 'session'],
  ['after a stream ended while it was writing', 'stream'],
  ['if a server sends them to a client', 'client'],
])('headers that are refused or do not end do not end the process when V8 collects: %s', async (_name, kind) => {
  expect(await endOf(kind)).toEqual([0, null]);
});
