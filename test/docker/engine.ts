import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Before anything else: without an engine one sentence, instead of a failure of each test. */
export default async function setup(): Promise<void> {
  await run('docker', ['version', '--format', '{{.Server.Version}}']).catch(() => {
    throw new Error('No container engine answers: start one, or say where it is by DOCKER_HOST.');
  });
}
