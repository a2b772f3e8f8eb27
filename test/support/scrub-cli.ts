import { addClusterVerify } from '../../cluster/cli/verify-command.ts';
import { type CliEnd, runHere } from './program-here.ts';

/** `ledger-trust …` with `cluster verify`, in this process. */
export function runCli(env: Readonly<Record<string, string>>, args: readonly string[]): Promise<CliEnd> {
  return runHere(args, {
    env,
    addMore: (program, terminal) => addClusterVerify(program.command('cluster'), terminal),
  });
}
