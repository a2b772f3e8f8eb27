#!/usr/bin/env node
import { processTerminal, programVersion } from '../src/cli/process-terminal.ts';
import { runProgram } from '../src/cli/program.ts';
import type { Environment } from '../src/config.ts';
import { addClusterCommands } from './cli/cluster-commands.ts';
import { addClusterVerify } from './cli/verify-command.ts';

// `ledger-trust` with the commands of a cluster: src/cli knows nothing of clusters.
await runProgram(processTerminal(), process.argv.slice(2), programVersion(), (program, terminal) => {
  const print = (text: string) => void terminal.print(text);
  // Loaded when it is needed: `keygen` has nothing to do with Redis.
  const open = async (env: Environment) => (await import('./cli/redis-view.ts')).openRedisView(env);
  const cluster = addClusterCommands(program, { env: terminal.env, print, open });
  addClusterVerify(cluster, terminal);
});
