#!/usr/bin/env node
import { refuseOldNode } from '../src/runtime/node-version.ts';

refuseOldNode(process.version);
const { runProgram } = await import('../src/cli/program.ts');
const { processTerminal, programVersion } = await import('../src/cli/terminal/process-terminal.ts');
const { addCommandsOfClusters } = await import('./cli/add-commands.ts');

await runProgram(processTerminal(), process.argv.slice(2), programVersion(), addCommandsOfClusters);
