import { spawn, spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

/** `npm run test:docker`: one sentence where there is no engine, else the tests, with the arguments given. */
const root = resolve(import.meta.dirname, '../..');

function answers(...args: string[]): boolean {
  return spawnSync('docker', args, { stdio: 'ignore' }).status === 0;
}

if (!answers('version')) {
  process.stderr.write('test:docker: no container engine answers: start one, or name it by DOCKER_HOST.\n');
  process.exit(1);
}
if (!answers('compose', 'version')) {
  process.stderr.write('test:docker: `docker compose` is missing: install the Compose plugin.\n');
  process.exit(1);
}
const config = join(import.meta.dirname, 'vitest.config.ts');
const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config, '--root', root];
const tests = spawn(process.execPath, [...args, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
// The tests hear Ctrl-C themselves, and remove their containers.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => tests.kill('SIGTERM'));
tests.once('exit', (code) => process.exit(code ?? 1));
