import { type ClusterSigningJob, signClusterLanes } from './cluster-requests.ts';

/** Signs lanes of a cluster's run, a process of its own: takes its job as JSON on standard input. */
let text = '';
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
signClusterLanes(JSON.parse(text) as ClusterSigningJob);
process.stdout.write('{}');
