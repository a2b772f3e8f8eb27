import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { missedAims } from './aims.ts';
import { benchCluster } from './cluster.ts';
import { type BenchOptions, benchUsage, readOptions, type Transport } from './options.ts';
import { readPages } from './pages.ts';
import { measureRun, type PreparedRun, prepareRun } from './run.ts';
import type { RunReport } from './run-report.ts';
import { anonymousMib, startServer } from './server-process.ts';
import { keyCount, makeSetting } from './setting.ts';
import { meanOf, rounded } from './sum.ts';
import { verifyRuns } from './verify-runs.ts';

/** What each transport has to reach of the limit of verifications. */
const targets: Readonly<Record<Transport, number>> = { stream: 0.45, grpc: 0.3, rest: 0.25 };
/** 400 MB. */
const memoryTargetMib = rounded(400e6 / 2 ** 20);
const pageTargetMs = 100;

/** `npm run bench`: what is measured and how is told in docs/performance.md. */
async function bench(options: BenchOptions): Promise<object> {
  const workDir = mkdtempSync(join(tmpdir(), 'ledger-bench-'));
  // As any start but the first: Node then has what it made of the sources.
  await (await startServer(join(workDir, 'first'), null)).stop();
  const server = await startServer(join(workDir, 'data'), options.profileDir);
  try {
    const memoryAtStart = anonymousMib(server.pid);
    const runs: PreparedRun[] = [];
    const reports: RunReport[] = [];
    for (const ledgers of options.ledgerCounts) {
      for (const transport of options.transports) {
        progress(`${transport}, ${ledgers} ledger(s): signing ${options.events} events`);
        const run = await prepareRun(transport, await makeSetting(server.baseUrl, ledgers), options.events, workDir);
        progress(`${transport}, ${ledgers} ledger(s): sending`);
        const report = await measureRun(server, run);
        progress(JSON.stringify(withTarget(report)));
        runs.push(run);
        reports.push(report);
      }
    }
    const memory = anonymousMib(server.pid);
    const limit = meanOf(reports.flatMap((report) => report.verificationsMeasured));
    const [lastRun] = runs.slice(-1);
    const pages = options.memory && lastRun ? await readPages(server, lastRun.setting, options.events) : null;
    if (options.verified) progress('reading everything back');
    const verification = options.verified ? await verifyRuns(server, runs) : null;
    return {
      machine: { node: process.version, cores: cpus().length, cpu: cpus()[0]?.model ?? '' },
      events: options.events,
      payloadBytes: 500,
      keys: keyCount,
      limits: { verificationsPerSecond: Math.round(limit) },
      runs: reports.map(withTarget),
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

function withTarget(report: RunReport): object {
  const ratio = report.perSecond / report.verificationsPerSecond;
  const target = targets[report.transport];
  return { ...report, ofVerificationLimit: rounded(ratio), target, reached: ratio >= target };
}

function progress(line: string): void {
  process.stderr.write(`bench: ${line}\n`);
}

if (process.argv.includes('--help')) {
  console.log(benchUsage);
  process.exit(0);
}
const options = readOptions(process.argv.slice(2));
const measured = options.cluster ? await benchCluster(options, progress) : await bench(options);
const result = JSON.stringify(measured, null, 2);
if (options.jsonFile !== null) writeFileSync(options.jsonFile, `${result}\n`);
process.stdout.write(`${result}\n`);
const missed = missedAims(measured);
if (missed.length > 0) {
  progress(`missed: ${missed.join(', ')}`);
  process.exitCode = 1;
}
