#!/usr/bin/env node
import { processTerminal, programVersion } from '../src/cli/process-terminal.ts';
import { runProgram } from '../src/cli/program.ts';
import { addCommandsOfClusters } from './cli/add-commands.ts';

await runProgram(processTerminal(), process.argv.slice(2), programVersion(), addCommandsOfClusters);
