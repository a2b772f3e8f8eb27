import { readFileSync } from 'node:fs';

/**
 * Imported into a node before everything else: its Date.now() is ahead of the machine's by the milliseconds that the file TEST_CLOCK_FILE holds,
 * which may change while it runs.
 */
const file = process.env.TEST_CLOCK_FILE ?? '';
const lookEveryMs = 50;
const machineNow = Date.now;
let aheadMs = 0;
Date.now = () => machineNow() + aheadMs;
setInterval(() => {
  try {
    aheadMs = Number(readFileSync(file, 'utf8')) || 0;
  } catch {
    aheadMs = 0;
  }
}, lookEveryMs).unref();
