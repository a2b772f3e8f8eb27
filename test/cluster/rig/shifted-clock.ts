import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Imported into a node before everything else: its Date.now() is ahead of the machine's by the milliseconds that a file
 * holds, which may change while it runs: the one that TEST_CLOCK_FILE names, or `clock-ahead-ms` in the data directory.
 */
const file = process.env.TEST_CLOCK_FILE ?? join(process.env.DATA_DIR ?? '', 'clock-ahead-ms');
const lookEveryMs = 50;
const machineNow = Date.now;
let aheadMs = 0;
Date.now = () => machineNow() + aheadMs;
look();
setInterval(look, lookEveryMs).unref();

function look(): void {
  try {
    aheadMs = Number(readFileSync(file, 'utf8')) || 0;
  } catch {
    aheadMs = 0;
  }
}
