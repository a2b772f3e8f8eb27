import { once } from 'node:events';
import { createRequire } from 'node:module';
import { styleText } from 'node:util';
import { exitCodes } from './exit-codes.ts';
import { reasonOf, type Terminal } from './terminal.ts';

export function processTerminal(): Terminal {
  // A reader that closes stdout early (`| head`) is no failure. The exit code stays: it may be a result.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit();
    process.stderr.write(`The output cannot be written: ${reasonOf(error)}.\n`);
    process.exit(exitCodes.writeFailed);
  });
  // What cannot be told changes no result.
  process.stderr.on('error', () => {});
  return {
    env: process.env,
    now: Date.now,
    async print(text) {
      if (!process.stdout.write(text)) await once(process.stdout, 'drain');
    },
    tell(text) {
      process.stderr.write(text);
    },
    colored: (color, text) => styleText(color, text, { stream: process.stdout }),
    isWatched: process.stderr.isTTY === true,
    stdin: () => process.stdin,
    exitWith(code) {
      process.exitCode = code;
    },
  };
}

/** The version in package.json, found by the package's name: sources and built files are at different distances. */
export function programVersion(): string {
  const { version } = createRequire(import.meta.url)('ledger-trust/package.json') as { version: string };
  return version;
}
