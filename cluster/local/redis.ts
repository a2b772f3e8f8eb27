import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type ServerProcess, startServerProcess } from './child-process.ts';
import { accepts, afterMs, freePorts } from './ports.ts';

const startMaxMs = 10_000;
const pollMs = 20;

/** A Redis server as a child process on the loopback, without persistence. Disposing it stops the process. */
export interface LocalRedis extends AsyncDisposable {
  readonly url: string;
  readonly process: ServerProcess;
}

/** Starts `redis-server` from the PATH, with its log in `dir`. Default: any free port. Throws if it does not start. */
export async function startRedis(options: { readonly dir: string; readonly port?: number }): Promise<LocalRedis> {
  const began = performance.now();
  await mkdir(options.dir, { recursive: true });
  const [free = 0] = options.port ? [options.port] : await freePorts(1);
  const log = join(options.dir, 'redis.log');
  const args = [
    '--port',
    String(free),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    options.dir,
  ];
  const process = await startServerProcess('redis-server', args, log);
  while (!(await accepts('127.0.0.1', free))) {
    if (process.hasEnded() || performance.now() - began > startMaxMs) {
      await process.kill();
      throw new Error(`redis-server did not start: ${await process.lastLine()}; see ${log}`);
    }
    await afterMs(pollMs);
  }
  return {
    url: `redis://127.0.0.1:${free}`,
    process,
    [Symbol.asyncDispose]: () => process.stop(),
  };
}
