import { type ClusterSigningJob, signClusterRequests } from './cluster-requests.ts';

/** Signs requests of a cluster's run, a process of its own: takes its job as JSON on standard input. */
let text = '';
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
signClusterRequests(JSON.parse(text) as ClusterSigningJob);
process.stdout.write('{}');
