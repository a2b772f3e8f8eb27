import { setPriority } from 'node:os';
import { answerJobs } from './forked.ts';
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

answerJobs((job: LoadJob) => ({ rest: loadRest, grpc: loadGrpc, stream: loadStream })[job.transport](job));
