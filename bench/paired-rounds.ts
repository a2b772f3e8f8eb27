import type { LoadJob } from './load-job.ts';
import type { Transport } from './options.ts';
import { loadJob, prepareRun, startLoadGenerator } from './run.ts';
import { cpuTime, type ServerProcess } from './server-process.ts';
import { keyCount, type Setting } from './setting.ts';

/** Appends of a round, and the server's processor time for each: of all threads, and of the main one. */
export interface Round {
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly mainUs: number;
}

/** Rounds of the load of `npm run bench` on one server, each of new events. The server has run for a while before. */
export class AppendRounds implements Disposable {
  readonly #server: ServerProcess;
  readonly #job: LoadJob;
  readonly #eventsPerSigner: number;
  readonly #generator = startLoadGenerator();
  #from: number;

  private constructor(server: ServerProcess, job: LoadJob, events: number) {
    this.#server = server;
    this.#job = job;
    this.#eventsPerSigner = events / keyCount;
    this.#from = job.from;
  }

  /** Signs the events of so many rounds beforehand. */
  static async start(
    server: ServerProcess,
    transport: Transport,
    setting: Setting,
    { rounds, events }: { readonly rounds: number; readonly events: number },
    workDir: string,
  ): Promise<AppendRounds> {
    const run = await prepareRun(transport, setting, rounds * events, workDir);
    const job = loadJob(run, transport === 'rest' ? server.httpPort : server.grpcPort);
    const made = new AppendRounds(server, job, events);
    await made.#generator.ask({ ...job, from: 0, to: run.warmUp });
    return made;
  }

  async next(): Promise<Round> {
    const part = { ...this.#job, from: this.#from, to: this.#from + this.#eventsPerSigner };
    this.#from = part.to;
    const before = cpuTime(this.#server.pid);
    const { accepted, seconds, failed, firstFailure } = await this.#generator.ask(part);
    if (failed > 0) throw new Error(`${this.#job.transport}: ${failed} failed: ${firstFailure}`);
    const after = cpuTime(this.#server.pid);
    const cpuUs = (after.allUs - before.allUs) / accepted;
    return { perSecond: accepted / seconds, cpuUs, mainUs: (after.mainUs - before.mainUs) / accepted };
  }

  [Symbol.dispose](): void {
    this.#generator[Symbol.dispose]();
  }
}

interface Pairs<T extends Round> {
  readonly alone: readonly T[];
  readonly beside: readonly T[];
  /** What part of the appends a second is lost beside the other load, in order of size. */
  readonly losses: readonly number[];
  readonly lossMedian: number;
}

/** Rounds alone and beside another load, alternating; which of the two comes first changes from pair to pair. */
export async function pairedRounds<T extends Round>(
  pairs: number,
  roundAlone: () => Promise<T>,
  roundBeside: () => Promise<T>,
): Promise<Pairs<T>> {
  const [alone, beside] = await inPairs(pairs, roundAlone, roundBeside);
  const losses = alone
    .map((one, at) => 1 - (beside[at] ?? one).perSecond / one.perSecond)
    .sort((left, right) => left - right);
  return { alone, beside, losses, lossMedian: losses[Math.floor(pairs / 2)] ?? 0 };
}

/** Measures two things alternately. Which of them comes first changes from pair to pair. */
export async function inPairs<T>(
  pairs: number,
  measureOne: () => Promise<T>,
  measureOther: () => Promise<T>,
): Promise<readonly [ones: readonly T[], others: readonly T[]]> {
  const [ones, others]: [T[], T[]] = [[], []];
  for (let pair = 0; pair < pairs; pair += 1) {
    if (pair % 2 === 1) others.push(await measureOther());
    ones.push(await measureOne());
    if (pair % 2 === 0) others.push(await measureOther());
  }
  return [ones, others];
}
