#!/usr/bin/env node
import { runProgram } from '../src/cli/program.ts';
import { processTerminal, programVersion } from '../src/cli/terminal/process-terminal.ts';
import { addCommandsOfClusters } from './cli/add-commands.ts';

await runProgram(processTerminal(), process.argv.slice(2), programVersion(), addCommandsOfClusters);
