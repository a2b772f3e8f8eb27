import type { AddCommands } from '../../src/cli/program.ts';
import type { Environment } from '../../src/runtime/config/setting.ts';
import { addClusterCommands } from './cluster-commands.ts';
import { addClusterVerify } from './verify-command.ts';

/** Adds the commands for clusters. src/cli does not import cluster/. */
export const addCommandsOfClusters: AddCommands = (program, terminal) => {
  const print = (text: string) => void terminal.print(text);
  // Loaded on demand: most commands, such as `keygen`, need no Redis.
  const open = async (env: Environment) => (await import('./redis-view.ts')).openRedisView(env);
  const cluster = addClusterCommands(program, { env: terminal.env, print, open });
  addClusterVerify(cluster, terminal);
};
