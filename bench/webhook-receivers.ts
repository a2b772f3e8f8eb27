import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerJobs } from './forked.ts';

/** How a receiver behaves; the dead one takes connections and never answers. */
export type ReceiverKind = 'healthy' | 'dead' | 'slow';

/** Receivers to start, or the request for a report. */
export type ReceiversJob = readonly ReceiverKind[] | 'report';

export interface ReceiverReport {
  readonly url: string;
  readonly kind: ReceiverKind;
  /** Different events. */
  readonly received: number;
  readonly inOrder: boolean;
  /** Milliseconds since 1970. */
  readonly lastAtMs: number;
}

const slowMs = 1_000;
let receivers: readonly { readonly report: () => ReceiverReport }[] = [];

/** Receivers as a process. */
answerJobs(async (job: ReceiversJob): Promise<ReceiverReport[]> => {
  if (job !== 'report') receivers = await Promise.all(job.map(start));
  return receivers.map(({ report }) => report());
});

async function start(kind: ReceiverKind): Promise<{ report: () => ReceiverReport }> {
  const seen = new Set<number>();
  let inOrder = true;
  let newest = -1;
  let lastAtMs = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (kind === 'dead') return;
      const text = Buffer.concat(chunks).toString();
      const seq = Number(/"seq":(\d+)/.exec(text)?.[1] ?? -1);
      if (!seen.has(seq) && seq < newest) inOrder = false;
      seen.add(seq);
      newest = Math.max(newest, seq);
      lastAtMs = Date.now();
      if (kind === 'slow') setTimeout(() => response.end(), slowMs);
      else response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { report: () => ({ url, kind, received: seen.size, inOrder, lastAtMs }) };
}
