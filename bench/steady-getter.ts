import { Agent, get } from 'node:http';
import { answerJobs } from './forked.ts';
import { LatencyHistogram } from './latency.ts';

/** What is asked for, at an even rate until the process is told to report, as JSON. */
export interface GetterJob {
  readonly port: number;
  readonly path: string;
  readonly apiKey: string;
  readonly perSecond: number;
}

export interface GetterReport {
  readonly answered: number;
  /** Answers with another status than 200. */
  readonly failed: number;
  readonly firstFailure: string | null;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const everyMs = 10;
/** Requests that wait for an answer. At this many none is sent. */
const openMax = 1_000;
const agent = new Agent({ keepAlive: true, maxSockets: 1_000 });

answerJobs((job: GetterJob | 'report'): GetterReport => {
  clearInterval(timer);
  if (job !== 'report') start(job);
  return { answered, failed, firstFailure, p50Ms: latencies.percentileMs(0.5), p99Ms: latencies.percentileMs(0.99) };
});

const latencies = new LatencyHistogram();
let [answered, failed, open] = [0, 0, 0];
let firstFailure: string | null = null;
let timer: NodeJS.Timeout | undefined;

function start(job: GetterJob): void {
  const startedMs = performance.now();
  let sent = 0;
  timer = setInterval(() => {
    const due = ((performance.now() - startedMs) * job.perSecond) / 1_000;
    for (; sent < due && open < openMax; sent += 1) ask(job);
    sent = Math.ceil(due);
  }, everyMs);
}

function ask({ port, path, apiKey }: GetterJob): void {
  const startedMs = performance.now();
  open += 1;
  get({ host: '127.0.0.1', port, path, agent, headers: { authorization: `Bearer ${apiKey}` } }, (answer) => {
    let text = '';
    answer.setEncoding('utf8');
    answer.on('data', (chunk: string) => {
      text += chunk;
    });
    answer.on('end', () => {
      open -= 1;
      answered += 1;
      latencies.record((performance.now() - startedMs) * 1_000);
      if (answer.statusCode !== 200) noteFailure(text);
    });
  }).on('error', (error) => {
    open -= 1;
    noteFailure(error.message);
  });
}

function noteFailure(text: string): void {
  failed += 1;
  firstFailure ??= text;
}
