import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Imported into a node before all other modules. It sets Date.now() ahead by the milliseconds in a file, which is read
 * again and again: `clock-ahead-ms` in the data directory. Negative: behind.
 */
const file = join(process.env.DATA_DIR ?? '', 'clock-ahead-ms');
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
