import { type AddCommands, runProgram } from '../../src/cli/program.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';

export interface CliEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface HereOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
  readonly addMore?: AddCommands;
}

/** Runs `ledger-trust` in this process, for tests of its answers. Paths have to be absolute. */
export async function runHere(args: readonly string[], options: HereOptions = {}): Promise<CliEnd> {
  let [code, out, err] = [0, '', ''];
  const terminal: Terminal = {
    // No folder of profiles but the one that a test names.
    env: { XDG_CONFIG_HOME: '/nonexistent', ...options.env },
    now: Date.now,
    async print(text) {
      out += text;
    },
    tell(text) {
      err += text;
    },
    colored: (_color, text) => text,
    isWatched: false,
    async *stdin() {
      yield Buffer.from(options.input ?? '');
    },
    exitWith(given) {
      code = given;
    },
  };
  await runProgram(terminal, args, '0', options.addMore);
  return { code, out, err };
}
