import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { loadGrpc } from './load-grpc.ts';
import type { LoadJob } from './load-job.ts';
import { loadRest } from './load-rest.ts';
import { loadStream } from './load-stream.ts';

/**
 * Behind the server where both want a core: on one machine each answer would wake the load generator in place of the
 * server that is about to write the next one. Its clients' machines do not do that to a server.
 */
const niceness = 10;
setPriority(0, niceness);

/** What LoadGenerator runs: takes jobs on standard input and answers their results, a line of JSON each. */
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line) as LoadJob;
  const load = { rest: loadRest, grpc: loadGrpc, stream: loadStream }[job.transport];
  process.stdout.write(`${JSON.stringify(await load(job))}\n`);
}
