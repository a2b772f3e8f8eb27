import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

test.each([
  ['bench', '--ledgers 1|100'],
  ['bench:webhooks', '--pairs N'],
  ['campaign', '--acknowledged N'],
  ['soak', '--attack NAME'],
  ['cluster:local', 'GRPC_PORT'],
])('npm run %s -- --help lists the options, and does nothing else', async (script, option) => {
  const { stdout } = await run('npm', ['run', '--silent', script, '--', '--help'], { cwd: root, timeout: 60_000 });
  expect(stdout).toContain(option);
});
