import { type SigningJob, signRequests } from './signing.ts';

/** Signs requests of a run, a process of its own: takes its job as JSON on standard input. */
let text = '';
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
signRequests(JSON.parse(text) as SigningJob);
process.stdout.write('{}');
