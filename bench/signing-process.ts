import { type SigningJob, signLanes } from './signing.ts';

/** Signs lanes of a run, a process of its own: takes its job as JSON on standard input. */
let text = '';
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
signLanes(JSON.parse(text) as SigningJob);
process.stdout.write('{}');
