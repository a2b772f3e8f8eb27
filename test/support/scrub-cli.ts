import { addClusterVerify } from '../../cluster/cli/verify-command.ts';
import { runProgram } from '../../src/cli/program.ts';

export interface CliEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** `ledger-trust …` with `cluster verify`, in this process. */
export async function runCli(env: Readonly<Record<string, string>>, args: readonly string[]): Promise<CliEnd> {
  let [code, out, err] = [0, '', ''];
  const terminal = {
    env,
    now: Date.now,
    print: async (text: string) => {
      out += text;
    },
    tell: (text: string) => {
      err += text;
    },
    isWatched: false,
    readStdin: async () => Buffer.alloc(0),
    exitWith: (given: number) => {
      code = given;
    },
  };
  await runProgram(terminal, args, '0', (program) => addClusterVerify(program.command('cluster'), terminal));
  return { code, out, err };
}
