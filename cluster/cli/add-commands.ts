import type { AddCommands } from '../../src/cli/program.ts';
import type { Environment } from '../../src/config.ts';
import { addClusterCommands } from './cluster-commands.ts';
import { addClusterVerify } from './verify-command.ts';

/** The commands of a cluster, which src/cli knows nothing of. */
export const addCommandsOfClusters: AddCommands = (program, terminal) => {
  const print = (text: string) => void terminal.print(text);
  // Loaded when it is needed: `keygen` has nothing to do with Redis.
  const open = async (env: Environment) => (await import('./redis-view.ts')).openRedisView(env);
  const cluster = addClusterCommands(program, { env: terminal.env, print, open });
  addClusterVerify(cluster, terminal);
};
