#!/usr/bin/env node
import { refuseOldNode } from '../runtime/node-version.ts';

refuseOldNode(process.version);
const { runProgram } = await import('./program.ts');
const { processTerminal, programVersion } = await import('./terminal/process-terminal.ts');

await runProgram(processTerminal(), process.argv.slice(2), programVersion());
