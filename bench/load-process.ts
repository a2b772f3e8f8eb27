import { loadGrpc } from './load-grpc.ts';
import type { LoadJob } from './load-job.ts';
import { loadRest } from './load-rest.ts';
import { loadStream } from './load-stream.ts';

/** The load generator, a process of its own: takes its job as JSON on standard input, answers the result as JSON. */
let text = '';
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
const job = JSON.parse(text) as LoadJob;
const load = { rest: loadRest, grpc: loadGrpc, stream: loadStream }[job.door];
process.stdout.write(JSON.stringify(await load(job)));
