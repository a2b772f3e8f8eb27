import { setPriority } from 'node:os';
import { loadGrpc } from './load-grpc.ts';
import type { LoadJob } from './load-job.ts';
import { loadRest } from './load-rest.ts';
import { loadStream } from './load-stream.ts';

/**
 * Behind the server where both want a core: on one machine each answer would wake the load generator in place of the server that is
 * about to write the next one. Its clients' machines do not do that to a server.
 */
const niceness = 10;
setPriority(0, niceness);

/** The load generator, a process of its own: takes its job as JSON on standard input, answers the result as JSON. */
let text = '';
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
const job = JSON.parse(text) as LoadJob;
const load = { rest: loadRest, grpc: loadGrpc, stream: loadStream }[job.door];
process.stdout.write(JSON.stringify(await load(job)));
