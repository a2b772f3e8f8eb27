import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../src/store/cassandra/session/driver-session.ts';
import { cassandraSettings } from '../src/store/cassandra/session/settings.ts';
import { answerJob } from './child.ts';
import { BareDriver } from './cluster-bare-driver.ts';
import { BareLedger, readSample } from './cluster-bare-ledger.ts';
import type { BareLoopJob, BareLoopResult } from './cluster-bare-loop.ts';
import { cpuTime } from './server-process.ts';
import { sumOf } from './sum.ts';

/** Before time is taken: the loop, and the statements that it has to prepare. */
const warmUpMs = 6_000;

/** The bare loop, a process of its own: takes its job as JSON on standard input, answers the result as JSON. */
async function run(job: BareLoopJob): Promise<BareLoopResult> {
  const settings = cassandraSettings(job.env);
  const client = createClient(settings, settings.keyspace);
  await client.connect();
  try {
    const driver = new BareDriver(client);
    const sample = await readSample(driver, job.sampleLedgerId);
    const sizes = evenlyMixed(job);
    const ledgers = Array.from({ length: job.ledgers }, () => new BareLedger(driver, sample, job.mastersOfLedger));
    await Promise.all(ledgers.map((ledger) => ledger.claim()));
    const count = { events: 0, batches: 0, ms: 0 };
    let ended = false;
    const gapMs = job.batchesPerSecond === null ? 0 : (job.ledgers * 1_000) / job.batchesPerSecond;
    const startedMs = performance.now();
    const loops = ledgers.map(async (ledger, at) => {
      for (let batch = at; !ended; batch++) {
        const earlyMs = startedMs + (batch - at) * gapMs - performance.now();
        if (earlyMs > 0) await sleep(earlyMs);
        const size = sizes[batch % sizes.length] ?? 1;
        const began = performance.now();
        await ledger.append(size, job.withProjections);
        count.events += size;
        count.batches += 1;
        count.ms += performance.now() - began;
      }
    });
    await Promise.race([sleep(warmUpMs), ...loops]);
    const [before, loopBefore, cassandraBefore] = [{ ...count }, process.cpuUsage(), cpuTime(job.cassandraPid).allUs];
    const began = performance.now();
    await Promise.race([sleep(job.seconds * 1_000), ...loops]);
    const seconds = (performance.now() - began) / 1_000;
    const batches = count.batches - before.batches;
    const { user, system } = process.cpuUsage(loopBefore);
    const result: BareLoopResult = {
      events: count.events - before.events,
      batches,
      batchMs: (count.ms - before.ms) / batches,
      seconds,
      loopUs: user + system,
      cassandraUs: cpuTime(job.cassandraPid).allUs - cassandraBefore,
    };
    ended = true;
    await Promise.all(loops);
    return result;
  } finally {
    await client.shutdown();
  }
}

const mixedSizes = 1_009;

/** Sizes in their measured shares, in steps of a fixed length through their distribution. */
function evenlyMixed({ groupSizes }: BareLoopJob): number[] {
  const commits = sumOf(groupSizes, (group) => group.commits);
  const inOrder: number[] = [];
  let below = 0;
  for (const group of groupSizes) {
    below += group.commits;
    while (inOrder.length < Math.round((below / commits) * mixedSizes)) inOrder.push(group.events);
  }
  const step = 387;
  return inOrder.map((_, at) => inOrder[(at * step) % inOrder.length] ?? 1);
}

await answerJob(run);
