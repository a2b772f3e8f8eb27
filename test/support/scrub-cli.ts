import { addCommandsOfClusters } from '../../cluster/cli/add-commands.ts';
import { type CliEnd, runHere } from './program-here.ts';

/** `ledger-trust …` with the commands of a cluster, in this process. */
export function runCli(env: Readonly<Record<string, string>>, args: readonly string[]): Promise<CliEnd> {
  return runHere(args, { env, addMore: addCommandsOfClusters });
}
