import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { pages } from '../../src/node/pages.ts';
import type { TlsKeys } from '../../src/rpc/http/server.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { SeededRandom } from '../simulation/random.ts';
import { caseOf, sendCase } from './fuzz-http1.ts';
import { FuzzSeeds } from './fuzz-seeds.ts';
import { startListeningNode } from './listening-node.ts';

interface FuzzOptions {
  readonly forMs: number;
  /** Cases at a time. */
  readonly atOnce: number;
  /** The port speaks TLS with this certificate. */
  readonly tls?: TlsKeys;
}

/** A connection whose client has ended its side is ended by the service within this time, its last answers included. */
const endMaxMs = 5_000;
/** A client that keeps its side open leaves after so long a silence. */
const silentMs = 100;
/** What starts an answer of the service. */
const ownAnswer = /^HTTP\/1\.1 [1-5]\d\d /;

/** The text of an answer over HTTPS, from a certificate that nobody knows. */
function overTls(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { rejectUnauthorized: false, agent: false }, (answer) => resolve(text(answer)));
    asked.on('error', reject).end();
  });
}

/** Sends cases, each of a seed, to a node of its own. Returns a line for each fault, with its seed. */
export async function fuzzHttp1({ forMs, atOnce, tls }: FuzzOptions): Promise<string[]> {
  const seeds = new FuzzSeeds();
  process.stdout.write(`fuzzing HTTP/1 with ${seeds}\n`);
  const memory = new MemoryBudget(64 * 1024 * 1024);
  const handlers = {
    'HealthService.GetHealth': async () => ({ status: 'ok' }),
    'ActorService.CreateActor': async () => ({}),
  };
  await using node = await startListeningNode({ grpc: false, handlers, memory, pages, ...(tls && { tls }) });
  const url = `${node.base}/v1/health`;
  const healthOf = () => (tls ? overTls(url) : fetch(url).then((answered) => answered.text()));
  let successes = 0;
  const faults: string[] = [];
  const endMs = performance.now() + forMs;
  const one = async (): Promise<void> => {
    while (performance.now() < endMs && faults.length < 10) {
      const seed = seeds.next();
      const random = new SeededRandom(seed);
      const pieces = caseOf(random);
      const ends = random.chance(0.5);
      const { answer, closed } = await sendCase(
        { port: node.http.port, tls: tls !== undefined },
        { pieces, ends, silentMs: ends ? endMaxMs : silentMs },
      );
      const sent = JSON.stringify(Buffer.concat(pieces).toString('latin1')).slice(0, 2_000);
      const fault = (what: string) => void faults.push(`seed ${seed}: ${what}: ${sent}`);
      if (answer.startsWith('HTTP/1.1 2')) successes += 1;
      if (ends && !closed) fault(`held for ${endMaxMs} ms`);
      if (answer !== '' && !ownAnswer.test(answer)) fault(`answered ${answer.slice(0, 200)}`);
      if (answer.startsWith('HTTP/1.1 5') && !answer.includes('"code"')) fault('no envelope');
      const health = await healthOf().catch(String);
      if (!health.includes('"status":"ok"')) fault(`then the health was ${health.slice(0, 200)}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  const failed = node.lines.filter((line) => /"code":"internal"|"level":"error"/.test(line));
  for (const line of failed.slice(0, 10)) faults.push(`${seeds}: ${line}`);
  for (let looks = 0; looks < 100 && memory.heldBytes() !== 0; looks += 1) await delay(20);
  if (memory.heldBytes() !== 0) faults.push(`${seeds}: ${memory.heldBytes()} bytes are still counted`);
  process.stdout.write(`${seeds.count} cases, ${successes} with a success as their first answer\n`);
  // Else the run did not get past the parser, or not to the node.
  if (!seeds.isOne && successes === 0) faults.push(`${seeds}: none of ${seeds.count} cases succeeded`);
  return faults;
}
