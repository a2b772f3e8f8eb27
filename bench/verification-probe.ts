import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { keyCount } from './setting.ts';
import { type Counted, signaturesOf, verifyFor } from './verifications.ts';

/** A fortieth of a core: enough to see the pace of the machine, and too little to change it. */
const lookSeconds = 0.0125;
const everyMs = 500;

/** What the thread is started with. */
const role = 'verification probe';

/** Verifies a little on a thread of its own, again and again, while this process measures something else. */
export class VerificationProbe {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Ready, and behind a first look that is not counted. */
  static async start(): Promise<VerificationProbe> {
    const worker = new Worker(new URL(import.meta.url), { workerData: role });
    await messageOf(worker);
    return new VerificationProbe(worker);
  }

  /** What it has counted meanwhile, at least one look. */
  async stop(): Promise<Counted> {
    const counted = messageOf<Counted>(this.#worker);
    this.#worker.postMessage('stop');
    return counted;
  }
}

function messageOf<T>(worker: Worker): Promise<T> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
}

function probe(): void {
  const signatures = signaturesOf(keyCount);
  const sum = { count: 0, cpuUs: 0 };
  const look = () => {
    const { count, cpuUs } = verifyFor(lookSeconds, signatures);
    sum.count += count;
    sum.cpuUs += cpuUs;
  };
  verifyFor(lookSeconds, signatures);
  const timer = setInterval(look, everyMs);
  parentPort?.once('message', () => {
    clearInterval(timer);
    if (sum.count === 0) look();
    parentPort?.postMessage(sum satisfies Counted);
  });
  parentPort?.postMessage('ready');
}

if (!isMainThread && workerData === role) probe();
