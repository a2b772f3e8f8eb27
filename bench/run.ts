import { rmSync } from 'node:fs';
import { commitTotals, totalsBetween } from './cluster-commits.ts';
import { Forked } from './forked.ts';
import type { LoadJob, LoadResult } from './load-job.ts';
import { partsOf, type Records } from './load-report.ts';
import type { Transport } from './options.ts';
import { verificationLimit } from './raw-limits.ts';
import type { RequestFile } from './request-file.ts';
import { type MeasuredPart, type RunReport, runReport } from './run-report.ts';
import { cpuTime, machineCpuUs, type ServerProcess } from './server-process.ts';
import { keyCount, type Setting } from './setting.ts';
import { type NodeRequests, signForNodes } from './signed-requests.ts';
import { wrongIn } from './signing.ts';
import { meanOf } from './sum.ts';

/** Events sent before time is taken, so that what is measured is a server that has run for a while. */
const warmUpEvents = 16_000;
/**
 * In parts of at least so many events, and so many parts at most, it is sent, with a look at the limit between them: a
 * shared host changes its pace within seconds. Smaller parts would be filling and draining for the most.
 */
const partEventsMin = 10_000;
const partsMax = 10;
/** Events of each of the 16 signers in flight: a few for each of a hundred ledgers, so that they share batches. */
function inFlightOf(transport: Transport, ledgers: number): number {
  if (transport === 'stream') return 96;
  return transport === 'grpc' && ledgers > 1 ? 64 : 24;
}

/** A run of one transport on one setting, with all its requests signed and in a file. */
export interface PreparedRun {
  readonly transport: Transport;
  readonly setting: Setting;
  readonly file: RequestFile;
  /** Records of each signer that warm the server up. */
  readonly warmUp: number;
}

/**
 * Does all jobs of a measurement: clients that append all day have their code compiled, and a process for each part of
 * a run would compile it on the server's processors.
 */
type LoadGenerator = Forked<LoadJob, LoadResult>;

export function startLoadGenerator(): LoadGenerator {
  return new Forked('load-process.ts');
}

/** Signs the requests of a run, all cores at it, into a file in `workDir`. */
export async function prepareRun(
  transport: Transport,
  setting: Setting,
  events: number,
  workDir: string,
): Promise<PreparedRun> {
  const warmUp = Math.ceil(warmUpEvents / keyCount);
  const recordsPerSigner = warmUp + Math.ceil(events / keyCount);
  const run = `${transport}-${setting.ledgers.length}`;
  const nodes = await signForNodes({ setting, transport, run }, recordsPerSigner, 1, workDir);
  const [{ file }] = nodes as [NodeRequests];
  return { transport, setting, file, warmUp };
}

/**
 * Sends a prepared run in parts, with a look at the limit of verifications a second beside each, and reports what came
 * of it. Throws where anything but the wrongly signed events was refused.
 */
export async function measureRun(server: ServerProcess, run: PreparedRun): Promise<RunReport> {
  const { warmUp, file } = run;
  using generator = startLoadGenerator();
  const send = (records: Records) => sendRecords(generator, server, run, records);
  await send({ from: 0, to: warmUp });
  const internalBases = [`http://127.0.0.1:${server.opsPort}`];
  const commits = await commitTotals(internalBases);
  const looks: number[] = [];
  let betweenUs = 0;
  const look = async (): Promise<void> => {
    const before = cpuTime(server.pid);
    looks.push((await verificationLimit()).perSecond);
    betweenUs += cpuTime(server.pid).allUs - before.allUs;
  };
  await look();
  const parts: MeasuredPart[] = [];
  const events = (file.recordsPerSigner - warmUp) * keyCount;
  const partCount = Math.max(1, Math.min(partsMax, Math.floor(events / partEventsMin)));
  for (const records of partsOf({ from: warmUp, to: file.recordsPerSigner }, partCount)) {
    const measured = await measurePart(server, () => send(records));
    await look();
    parts.push({ ...measured, verificationsPerSecond: meanOf(looks.slice(-2)) });
  }
  const commitsAfter = await commitTotals(internalBases);
  rmSync(file.path);
  return runReport(
    { transport: run.transport, ledgers: run.setting.ledgers.length },
    parts,
    { looks, betweenUs },
    totalsBetween(commits, commitsAfter),
  );
}

async function sendRecords(
  generator: LoadGenerator,
  server: ServerProcess,
  run: PreparedRun,
  { from, to }: Records,
): Promise<LoadResult> {
  const job = loadJob(run, run.transport === 'rest' ? server.httpPort : server.grpcPort);
  const result = await generator.ask({ ...job, from, to });
  const { refused, failed, firstFailure } = result;
  const wrong = wrongIn(from, to, keyCount);
  if (failed > 0 || refused !== wrong)
    throw new Error(`${run.transport}: ${refused} refused of ${wrong} wrong ones, ${failed} failed: ${firstFailure}`);
  return result;
}

async function measurePart(
  server: ServerProcess,
  send: () => Promise<LoadResult>,
): Promise<Omit<MeasuredPart, 'verificationsPerSecond'>> {
  const [startedMs, cpu, machineUs] = [performance.now(), cpuTime(server.pid), machineCpuUs()];
  const load = await send();
  const [endedMs, cpuAfter, machineAfterUs] = [performance.now(), cpuTime(server.pid), machineCpuUs()];
  return {
    load,
    wholeSeconds: (endedMs - startedMs) / 1_000,
    serverUs: cpuAfter.allUs - cpu.allUs,
    serverMainUs: cpuAfter.mainUs - cpu.mainUs,
    machineUs: machineAfterUs - machineUs,
  };
}

export function loadJob(run: PreparedRun, port: number): LoadJob {
  const { transport, file, setting, warmUp } = run;
  const apiKeys = setting.keys.map(({ apiKey }) => apiKey);
  return {
    transport,
    port,
    file,
    apiKeys,
    from: warmUp,
    to: file.recordsPerSigner,
    inFlight: inFlightOf(transport, setting.ledgers.length),
  };
}
