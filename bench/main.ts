import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { benchCluster } from './cluster.ts';
import { type BenchOptions, type Door, readOptions } from './options.ts';
import { readPages } from './pages.ts';
import { echoLimit, lmdbLimit, verificationLimit } from './raw-limits.ts';
import { loadJob, measureRun, type PreparedRun, prepareRun, type RunReport, rounded, verifyRuns } from './run.ts';
import { anonymousMib, startServer } from './server-process.ts';
import { keyCount, makeSetting } from './setting.ts';

/** What each door has to reach of the limit of verifications. */
const targets: Readonly<Record<Door, number>> = { stream: 0.45, grpc: 0.3, rest: 0.25 };
const memoryTargetMib = 400;
const pageTargetMs = 100;

/** `npm run bench`: what is measured and how is told in docs/performance.md. */
async function bench(options: BenchOptions): Promise<object> {
  const workDir = mkdtempSync(join(tmpdir(), 'ledger-bench-'));
  const server = await startServer(join(workDir, 'data'), options.profileDir);
  try {
    const memoryAtStart = anonymousMib(server.pid);
    const verifications: number[] = [];
    const lookAtVerifications = async () => {
      const { perSecond } = await verificationLimit(options.limitSeconds);
      verifications.push(perSecond);
      return perSecond;
    };
    const runs: PreparedRun[] = [];
    const reports: object[] = [];
    let echo: number | null = null;
    for (const ledgers of options.ledgerCounts) {
      for (const door of options.doors) {
        progress(`${door}, ${ledgers} ledger(s): signing ${options.events} events`);
        const run = await prepareRun(door, await makeSetting(server.baseUrl, ledgers), options.events, workDir);
        if (door === 'rest' && echo === null) echo = await echoOf(run);
        const before = await lookAtVerifications();
        progress(`${door}, ${ledgers} ledger(s): sending`);
        const report = await measureRun(server, run);
        const ofLimit = ratioOf(report, (before + (await lookAtVerifications())) / 2);
        progress(JSON.stringify(ofLimit));
        runs.push(run);
        reports.push(ofLimit);
      }
    }
    const memory = anonymousMib(server.pid);
    const lmdb = await lmdbLimit(options.limitSeconds, workDir);
    const limit = verifications.reduce((sum, one) => sum + one, 0) / verifications.length;
    const [lastRun] = runs.slice(-1);
    const pages = options.memory && lastRun ? await readPages(server, lastRun.setting, options.events) : null;
    if (options.verified) progress('reading everything back');
    const verification = options.verified ? await verifyRuns(server, runs) : null;
    return {
      machine: { node: process.version, cores: cpus().length, cpu: cpus()[0]?.model ?? '' },
      events: options.events,
      payloadBytes: 500,
      keys: keyCount,
      limits: {
        verificationsPerSecond: Math.round(limit),
        verificationsMeasured: verifications.map(Math.round),
        lmdbDurablePutsPerSecond: Math.round(lmdb.perSecond),
        ...(echo === null ? {} : { bareHttpEchoPerSecond: echo }),
      },
      runs: reports,
      memory: {
        ...{ rssAnonMibAtStart: rounded(memoryAtStart), rssAnonMib: rounded(memory) },
        ...{ targetMib: memoryTargetMib, reached: memory < memoryTargetMib },
      },
      ...(pages === null
        ? {}
        : { pages: { ...pages, targetMs: pageTargetMs, reached: pages.medianMs < pageTargetMs } }),
      verification,
    };
  } finally {
    await server.stop();
    rmSync(workDir, { recursive: true });
  }
}

/** The same requests to a bare HTTP server, a few seconds of them. */
async function echoOf(run: PreparedRun): Promise<number> {
  const job = loadJob(run, 0);
  const result = await echoLimit({ ...job, to: Math.min(job.to, job.from + 3_000) });
  return Math.round(result.accepted / result.seconds);
}

/** With its ratio to the limit as that was right before and after it: what else a host does changes within seconds. */
function ratioOf(report: RunReport, limit: number): object {
  const ratio = report.perSecond / limit;
  const target = targets[report.door];
  return {
    ...report,
    verificationsPerSecond: Math.round(limit),
    ofVerificationLimit: rounded(ratio),
    target,
    reached: ratio >= target,
  };
}

function progress(line: string): void {
  process.stderr.write(`bench: ${line}\n`);
}

const options = readOptions(process.argv.slice(2));
const measured = options.cluster ? await benchCluster(options, progress) : await bench(options);
const result = JSON.stringify(measured, null, 2);
if (options.jsonFile !== null) writeFileSync(options.jsonFile, `${result}\n`);
process.stdout.write(`${result}\n`);
