import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A script of package.json as an operator runs it. Nothing of it outlives the disposal. */
interface NpmScript extends AsyncDisposable {
  /** What it has said so far. */
  said(): string;
  /** SIGTERM to npm alone; its exit code and signal. */
  terminate(): Promise<unknown[]>;
  /** Ctrl-C: SIGINT to all that it has started, as a terminal does; resolves when npm has ended. */
  interrupt(): Promise<unknown[]>;
}

export function startNpmScript(script: string, env: NodeJS.ProcessEnv, args: readonly string[] = []): NpmScript {
  const npm = spawn('npm', ['run', script, '--', ...args], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    // A group of its own, so that nothing of it can be left behind.
    detached: true,
  });
  const { pid } = npm;
  if (pid === undefined) throw new Error('npm did not start');
  let said = '';
  npm.stdout.on('data', (data: Buffer) => {
    said += data.toString();
  });
  return {
    said: () => said,
    terminate: () => {
      const ended = once(npm, 'exit');
      npm.kill('SIGTERM');
      return ended;
    },
    interrupt: () => {
      const ended = once(npm, 'exit');
      process.kill(-pid, 'SIGINT');
      return ended;
    },
    async [Symbol.asyncDispose]() {
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // All of it has ended, as it should.
      }
    },
  };
}
