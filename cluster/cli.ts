#!/usr/bin/env node
import { processTerminal, programVersion } from '../src/cli/process-terminal.ts';
import { runProgram } from '../src/cli/program.ts';
import { addClusterCommands, openRedisView } from './cli/cluster-commands.ts';
import { addClusterVerify } from './cli/verify-command.ts';

// `ledger-trust` with the commands of a cluster: src/cli knows nothing of clusters.
await runProgram(processTerminal(), process.argv.slice(2), programVersion(), (program, terminal) => {
  const print = (text: string) => void terminal.print(text);
  const cluster = addClusterCommands(program, { env: terminal.env, print, open: openRedisView });
  addClusterVerify(cluster, terminal);
});
