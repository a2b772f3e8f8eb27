import { closeSync, openSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runProcess } from './child.ts';
import { LoadGenerator } from './load-generator.ts';
import type { LoadJob, LoadResult } from './load-job.ts';
import { partsOf, type Records } from './load-report.ts';
import type { Transport } from './options.ts';
import { verificationLimit } from './raw-limits.ts';
import type { RequestFile } from './request-file.ts';
import { type MeasuredPart, type RunReport, runReport } from './run-report.ts';
import { commitCounts, cpuTime, machineCpuUs, type ServerProcess } from './server-process.ts';
import { keyCount, type Setting } from './setting.ts';
import { eventSigner, type SigningJob, wrongIn } from './signing.ts';
import { meanOf } from './sum.ts';
import { requestOf } from './wire.ts';

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
  const path = join(workDir, `${run}.requests`);
  closeSync(openSync(path, 'w'));
  const first = eventSigner(setting, 0, run, keyCount)(0);
  const file = { path, recordBytes: requestOf(transport, first).length, signers: keyCount, recordsPerSigner };
  const processes = availableParallelism();
  await Promise.all(
    Array.from({ length: processes }, (_, process) => {
      const signers = Array.from({ length: keyCount }, (__, at) => at).filter((at) => at % processes === process);
      return runProcess<SigningJob, object>('signing-process.ts', { setting, transport, run, file, signers });
    }),
  );
  return { transport, setting, file, warmUp };
}

/**
 * Sends a prepared run in parts, with a look at the limit of verifications a second beside each, and reports what came
 * of it. Throws where anything but the wrongly signed events was refused.
 */
export async function measureRun(server: ServerProcess, run: PreparedRun): Promise<RunReport> {
  const { warmUp, file } = run;
  await using generator = new LoadGenerator();
  const send = (records: Records) => sendRecords(generator, server, run, records);
  await send({ from: 0, to: warmUp });
  const commits = await commitCounts(server);
  const looks: number[] = [];
  let betweenUs = 0;
  const look = async (): Promise<void> => {
    const before = cpuTime(server.pid);
    looks.push(await verificationLimit());
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
  const commitsAfter = await commitCounts(server);
  rmSync(file.path);
  return runReport(
    { transport: run.transport, ledgers: run.setting.ledgers.length },
    parts,
    { looks, betweenUs },
    {
      commits: commitsAfter.commits - commits.commits,
      events: commitsAfter.events - commits.events,
      seconds: commitsAfter.seconds - commits.seconds,
    },
  );
}

async function sendRecords(
  generator: LoadGenerator,
  server: ServerProcess,
  run: PreparedRun,
  { from, to }: Records,
): Promise<LoadResult> {
  const job = loadJob(run, run.transport === 'rest' ? server.httpPort : server.grpcPort);
  const result = await generator.run({ ...job, from, to });
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
