import { runForked } from './forked.ts';
import type { LimitJob } from './limit-process.ts';
import { keyCount } from './setting.ts';
import type { Counted } from './verifications.ts';

/** How long a look at the limit of verifications takes. */
const lookSeconds = 1;

interface VerificationLimit {
  readonly perSecond: number;
  /** CPU time of one, µs. */
  readonly cpuUs: number;
}

/** Looks at what Ed25519 verifications by Node's crypto take, on all cores. */
export async function verificationLimit(): Promise<VerificationLimit> {
  const job = { seconds: lookSeconds, keys: keyCount };
  const { count, cpuUs } = await runForked<LimitJob, Counted>('limit-process.ts', job);
  return { perSecond: count / lookSeconds, cpuUs: cpuUs / count };
}
