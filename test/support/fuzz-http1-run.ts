import { setTimeout as delay } from 'node:timers/promises';
import { pages } from '../../src/node/pages.ts';
import { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { caseOf, randomOf, sendCase } from './fuzz-http1.ts';
import { startListeningNode } from './listening-node.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly forMs: number;
  /** Cases at a time. */
  readonly atOnce: number;
}

/** A connection whose client has ended its side is ended by the service within this time, its last answers included. */
const endMaxMs = 5_000;
/** A client that keeps its side open leaves after so long a silence. */
const silentMs = 100;
/** What starts an answer of the service. */
const ownAnswer = /^HTTP\/1\.1 [1-5]\d\d /;

/** Sends cases to a node of its own and returns a line for each fault; prints the seed to repeat them. */
export async function fuzzHttp1({ seed, forMs, atOnce }: FuzzOptions): Promise<string[]> {
  process.stdout.write(`fuzzing HTTP/1 with seed ${seed}\n`);
  const memory = new MemoryBudget(64 * 1024 * 1024);
  const handlers = {
    'HealthService.GetHealth': async () => ({ status: 'ok' }),
    'ActorService.CreateActor': async () => ({}),
  };
  await using node = await startListeningNode({ grpc: false, handlers, memory, pages });
  const random = randomOf(seed);
  const faults: string[] = [];
  const endMs = performance.now() + forMs;
  let cases = 0;
  const one = async (): Promise<void> => {
    while (performance.now() < endMs && faults.length < 10) {
      const pieces = caseOf(random);
      cases += 1;
      const ends = random() < 0.5;
      const { answer, closed } = await sendCase(node.http.port, pieces, ends, ends ? endMaxMs : silentMs);
      const sent = JSON.stringify(Buffer.concat(pieces).toString('latin1')).slice(0, 2_000);
      if (ends && !closed) faults.push(`held for ${endMaxMs} ms: ${sent}`);
      if (answer !== '' && !ownAnswer.test(answer)) faults.push(`answered ${answer.slice(0, 200)}: ${sent}`);
      if (answer.startsWith('HTTP/1.1 5') && !answer.includes('"code"')) faults.push(`no envelope: ${sent}`);
      const health = await fetch(`${node.base}/v1/health`);
      if (!(await health.text()).includes('"status":"ok"')) faults.push(`no health after ${sent}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  const failed = node.lines.filter((line) => /"code":"internal"|"level":"error"/.test(line));
  for (const line of failed.slice(0, 10)) faults.push(line);
  for (let looks = 0; looks < 100 && memory.heldBytes() !== 0; looks += 1) await delay(20);
  if (memory.heldBytes() !== 0) faults.push(`${memory.heldBytes()} bytes are still counted`);
  process.stdout.write(`${cases} cases\n`);
  return faults;
}
