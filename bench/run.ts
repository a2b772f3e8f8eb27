import { closeSync, openSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { runProcess } from './child.ts';
import { LatencyHistogram } from './latency.ts';
import type { LoadJob, LoadResult } from './load-job.ts';
import type { Door } from './options.ts';
import type { RequestFile } from './request-file.ts';
import { commitCounts, cpuTime, machineCpuUs, type ServerProcess } from './server-process.ts';
import { keyCount, type Setting } from './setting.ts';
import { laneSigner, type SigningJob, wrongEvery } from './signing.ts';
import type { VerifyingJob, VerifyingResult } from './verifying-process.ts';
import { requestOf } from './wire.ts';

/** Events sent before time is taken, so that what is measured is a server that has run for a while. */
const warmUpEvents = 16_000;
/** Events between two looks at the limit, all lanes together: a shared host changes its pace within seconds. */
const partEvents = 10_000;
/** Events of each of the 16 lanes that wait at a time: on a hundred ledgers a few of each ledger, so that they are written together. */
const inFlight: Readonly<Record<Door, number>> = { rest: 24, grpc: 24, stream: 64 };

/** A run of one door on one setting, with all its requests signed and in a file. */
export interface PreparedRun {
  readonly door: Door;
  readonly setting: Setting;
  readonly file: RequestFile;
  /** Records of each lane that warm the server up. */
  readonly warmUp: number;
}

export interface RunReport {
  readonly door: Door;
  readonly ledgers: number;
  readonly events: number;
  readonly accepted: number;
  readonly refused: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuUsPerEvent: {
    readonly server: number;
    readonly serverMainThread: number;
    readonly loadGenerator: number;
  };
  /** Cores that neither the server nor the load generator used: above a tenth or so, something else ran on the machine. */
  readonly coresOfOthers: number;
  readonly eventsPerCommit: number;
  readonly commitMs: number;
  /** The limit, as it was beside each part for as long as that part took. */
  readonly verificationsPerSecond: number;
  /** Each look at it, before the first part and after each one. */
  readonly verificationsMeasured: readonly number[];
}

/** Signs the requests of a run, all cores at it, into a file in `workDir`. */
export async function prepareRun(door: Door, setting: Setting, events: number, workDir: string): Promise<PreparedRun> {
  const warmUp = Math.ceil(warmUpEvents / keyCount);
  const laneRecords = warmUp + Math.ceil(events / keyCount);
  const run = `${door}-${setting.ledgers.length}`;
  const path = join(workDir, `${run}.requests`);
  closeSync(openSync(path, 'w'));
  const first = laneSigner(setting, 0, run, keyCount)(0);
  const file = { path, recordBytes: requestOf(door, first).length, lanes: keyCount, laneRecords };
  const processes = availableParallelism();
  await Promise.all(
    Array.from({ length: processes }, (_, process) => {
      const lanes = Array.from({ length: keyCount }, (__, lane) => lane).filter((lane) => lane % processes === process);
      return runProcess<SigningJob, object>('signing-process.ts', { setting, door, run, file, lanes });
    }),
  );
  return { door, setting, file, warmUp };
}

/**
 * Sends a prepared run in parts, with a look at the limit of verifications a second beside each, and reports what came of it. Throws where
 * anything but the wrongly signed events was refused.
 */
export async function measureRun(
  server: ServerProcess,
  run: PreparedRun,
  lookAtLimit: () => Promise<number>,
): Promise<RunReport> {
  const job = loadJob(run, run.door === 'rest' ? server.httpPort : server.grpcPort);
  const { warmUp, file } = run;
  const load = (from: number, to: number) => runProcess<LoadJob, LoadResult>('load-process.ts', { ...job, from, to });
  await load(0, warmUp);
  const commits = await commitCounts(server);
  const looks = [await lookAtLimit()];
  const parts: MeasuredPart[] = [];
  const partRecords = Math.ceil(partEvents / keyCount);
  for (let from = warmUp; from < file.laneRecords; from += partRecords) {
    const to = Math.min(from + partRecords, file.laneRecords);
    parts.push(await measurePart(server, () => load(from, to)));
    looks.push(await lookAtLimit());
  }
  const commitsAfter = await commitCounts(server);
  rmSync(file.path);

  const events = (file.laneRecords - warmUp) * keyCount;
  const wrong = Math.floor((file.laneRecords * keyCount) / wrongEvery) - Math.floor((warmUp * keyCount) / wrongEvery);
  const sum = (of: (part: MeasuredPart) => number): number => parts.reduce((total, part) => total + of(part), 0);
  const [refused, failed] = [sum(({ load }) => load.refused), sum(({ load }) => load.failed)];
  if (failed > 0 || refused !== wrong) {
    const first = parts.find(({ load }) => load.firstFailure !== null)?.load.firstFailure;
    throw new Error(`${run.door}: ${refused} refused of ${wrong} wrong ones, ${failed} failed: ${first}`);
  }
  const latencies = new LatencyHistogram();
  for (const part of parts) latencies.add(part.load.latencyCounts);
  const [accepted, seconds] = [sum(({ load }) => load.accepted), sum(({ load }) => load.seconds)];
  const [serverUs, loadUs] = [sum((part) => part.serverUs), sum(({ load }) => load.cpuUs)];
  const verifiable = parts.reduce(
    (total, part, at) => total + (((looks[at] ?? 0) + (looks[at + 1] ?? 0)) / 2) * part.load.seconds,
    0,
  );
  const committed = commitsAfter.commits - commits.commits;
  return {
    door: run.door,
    ledgers: run.setting.ledgers.length,
    events,
    accepted,
    refused,
    perSecond: Math.round(accepted / seconds),
    p50Ms: rounded(latencies.percentileMs(0.5)),
    p99Ms: rounded(latencies.percentileMs(0.99)),
    cpuUsPerEvent: {
      server: rounded(serverUs / events),
      serverMainThread: rounded(sum((part) => part.serverMainUs) / events),
      loadGenerator: rounded(loadUs / events),
    },
    coresOfOthers: rounded((sum((part) => part.machineUs) - serverUs - loadUs) / (seconds * 1e6)),
    eventsPerCommit: rounded((commitsAfter.events - commits.events) / committed),
    commitMs: rounded(((commitsAfter.seconds - commits.seconds) / committed) * 1_000),
    verificationsPerSecond: Math.round(verifiable / seconds),
    verificationsMeasured: looks.map(Math.round),
  };
}

/** A part of a run, with the CPU time that it took, in µs. */
interface MeasuredPart {
  readonly load: LoadResult;
  readonly serverUs: number;
  readonly serverMainUs: number;
  readonly machineUs: number;
}

async function measurePart(server: ServerProcess, send: () => Promise<LoadResult>): Promise<MeasuredPart> {
  const [cpu, machineUs] = [cpuTime(server.pid), machineCpuUs()];
  const load = await send();
  const [cpuAfter, machineAfterUs] = [cpuTime(server.pid), machineCpuUs()];
  return {
    load,
    serverUs: cpuAfter.allUs - cpu.allUs,
    serverMainUs: cpuAfter.mainUs - cpu.mainUs,
    machineUs: machineAfterUs - machineUs,
  };
}

export function loadJob(run: PreparedRun, port: number): LoadJob {
  const { door, file, setting, warmUp } = run;
  const apiKeys = setting.keys.map(({ apiKey }) => apiKey);
  return { door, port, file, apiKeys, from: warmUp, to: file.laneRecords, inFlight: inFlight[door] };
}

export interface VerificationReport {
  readonly events: number;
  readonly actorSignatures: number;
  readonly seconds: number;
}

/** Reads everything that runs wrote back through the API and verifies it, all cores at it. Throws where anything is amiss. */
export async function verifyRuns(server: ServerProcess, runs: readonly PreparedRun[]): Promise<VerificationReport> {
  const startedMs = performance.now();
  const jobs = runs.flatMap((run) => verifyingJobs(server, run).map((job) => ({ run, job })));
  const results = new Map<PreparedRun, VerifyingResult[]>(runs.map((run) => [run, []]));
  const worker = async (): Promise<void> => {
    for (let next = jobs.shift(); next !== undefined; next = jobs.shift()) {
      results.get(next.run)?.push(await runProcess<VerifyingJob, VerifyingResult>('verifying-process.ts', next.job));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  let events = 0;
  let actorSignatures = 0;
  for (const [run, parts] of results) {
    checkWhole(run, parts);
    for (const part of parts) {
      events += part.verified;
      actorSignatures += part.actorSignatures;
    }
  }
  return { events, actorSignatures, seconds: rounded((performance.now() - startedMs) / 1_000) };
}

/** One job for a hot ledger, several for a run of many. */
function verifyingJobs(server: ServerProcess, { setting, file }: PreparedRun): VerifyingJob[] {
  const readers = setting.ledgers.map((ledger) => {
    const reader = setting.keys.find(({ actorId }) => actorId === ledger.buyerActorId);
    if (reader === undefined) throw new Error('nobody may read the ledger');
    return { ledgerId: ledger.ledgerId, reader };
  });
  const parts = Math.min(readers.length, 2 * availableParallelism());
  return Array.from({ length: parts }, (_, part) => ({
    baseUrl: server.baseUrl,
    events: file.laneRecords * keyCount,
    ledgers: readers.filter((__, at) => at % parts === part),
  }));
}

/** Every event of the run is there once, but for the wrongly signed ones, which are not. */
function checkWhole({ door, file }: PreparedRun, parts: readonly VerifyingResult[]): void {
  const problems = parts.flatMap((part) => part.problems);
  if (problems.length > 0) throw new Error(`${door}: ${problems.join('; ')}`);
  const events = file.laneRecords * keyCount;
  let found = 0;
  for (const part of parts) {
    for (const byte of Buffer.from(part.found, 'base64')) for (let bits = byte; bits > 0; bits &= bits - 1) found += 1;
  }
  const expected = events - Math.floor(events / wrongEvery);
  if (found !== expected) throw new Error(`${door}: ${found} events are there, not ${expected}`);
}

export function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
