import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { append, type Master, type Order } from '../parties.ts';

/** What an attack did to a node and to an honest actor beside it. */
interface Effects {
  /** What the attack resolved to, such as the bytes that it sent. */
  readonly attackCount: number;
  readonly rssBeforeMib: number;
  readonly rssMostMib: number;
  readonly rssAfterMib: number;
  readonly healthSlowestMs: number;
  readonly appends: number;
  readonly appendP99Ms: number;
  /** What honest appends were answered but 200, or why they were not. */
  readonly failures: readonly string[];
}

interface AttackedNode {
  readonly base: string;
  readonly pid: number;
  readonly order: Order;
  readonly master: Master;
}

/** Honest appends a second. */
const appendsPerSecond = 50;

/** Runs an attack beside honest appends and /v1/health; looks at the node's memory for `calmMs` after it. */
export async function effectsOf(
  node: AttackedNode,
  attack: (signal: AbortSignal) => Promise<number>,
  attackMs: number,
  calmMs: number,
): Promise<Effects> {
  const rssBeforeMib = rssMib(node.pid);
  let rssMostMib = 0;
  let healthSlowestMs = 0;
  const times: number[] = [];
  const failures: string[] = [];
  const one = async (n: number): Promise<void> => {
    const begun = performance.now();
    const outcome = await append(node.master, node.order.buyer, 'NOTED', { n }).then(
      ({ status, code }) => (status === 200 ? null : `${status} ${code}`),
      (error: Error) => String(error.cause ?? error),
    );
    times.push(performance.now() - begun);
    if (outcome !== null) failures.push(outcome);
  };
  const stop = new AbortController();
  const attacking = attack(stop.signal);
  const begun = performance.now();
  const running: Promise<void>[] = [];
  const health = (async () => {
    while (performance.now() - begun < attackMs) {
      const asked = performance.now();
      await (await fetch(`${node.base}/v1/health`)).text();
      healthSlowestMs = Math.max(healthSlowestMs, performance.now() - asked);
      rssMostMib = Math.max(rssMostMib, rssMib(node.pid));
      await delay(100);
    }
  })();
  for (let n = 0; performance.now() - begun < attackMs; n += 1) {
    running.push(one(n));
    await delay(Math.max(0, begun + ((n + 1) * 1_000) / appendsPerSecond - performance.now()));
  }
  await health;
  stop.abort();
  const [attackCount] = await Promise.all([attacking, ...running]);
  await delay(calmMs);
  times.sort((a, b) => a - b);
  const appendP99Ms = times[Math.floor(times.length * 0.99)] ?? 0;
  const rssAfterMib = rssMib(node.pid);
  return {
    attackCount,
    rssBeforeMib,
    rssMostMib,
    rssAfterMib,
    healthSlowestMs,
    appends: times.length,
    appendP99Ms,
    failures,
  };
}

/** What a process has in memory, MiB. Throws when it has ended. */
function rssMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (kib === undefined) throw new Error(`Process ${pid} has ended`);
  return Number(kib) / 1_024;
}
