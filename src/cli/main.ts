#!/usr/bin/env node
import { runProgram } from './program.ts';
import { processTerminal, programVersion } from './terminal/process-terminal.ts';

await runProgram(processTerminal(), process.argv.slice(2), programVersion());
