import { runProcess } from './child.ts';
import type { LimitJob } from './limit-process.ts';
import { keyCount } from './setting.ts';

/** How long a look at the limit of verifications takes. */
const lookSeconds = 1;

/** Ed25519 verifications a second of Node on all cores. */
export function verificationLimit(): Promise<number> {
  return runProcess<LimitJob, number>('limit-process.ts', { seconds: lookSeconds, keys: keyCount });
}
