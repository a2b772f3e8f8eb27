#!/usr/bin/env node
import { processTerminal, programVersion } from './process-terminal.ts';
import { runProgram } from './program.ts';

await runProgram(processTerminal(), process.argv.slice(2), programVersion());
