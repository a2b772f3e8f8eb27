import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { keyCount } from './setting.ts';
import { type Counted, Verifications } from './verifications.ts';

/** Fortieth parts of a core: enough to see the machine's pace, too little to change it. */
const lookSeconds = 0.05;
const everyMs = 2_000;

/** Verifies a little on a thread of its own, again and again, while this process measures something else. */
export class VerificationProbe {
  readonly #worker = new Worker(new URL(import.meta.url), { workerData: 'verification probe' });

  /** What it has counted meanwhile. */
  async stop(): Promise<Counted> {
    const counted = new Promise<Counted>((resolve, reject) => {
      this.#worker.once('message', resolve).once('error', reject);
    });
    this.#worker.postMessage('stop');
    return counted;
  }
}

function probe(): void {
  const verifications = new Verifications(keyCount);
  const sum = { count: 0, cpuUs: 0 };
  const look = () => {
    const { count, cpuUs } = verifications.during(lookSeconds);
    sum.count += count;
    sum.cpuUs += cpuUs;
  };
  look();
  const timer = setInterval(look, everyMs);
  parentPort?.once('message', () => {
    clearInterval(timer);
    parentPort?.postMessage(sum satisfies Counted);
  });
}

if (!isMainThread && workerData === 'verification probe') probe();
