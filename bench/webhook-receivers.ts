import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How a receiver behaves; the dead one takes connections and never answers. */
export type ReceiverKind = 'healthy' | 'dead' | 'slow';

export interface ReceiverReport {
  readonly url: string;
  readonly kind: ReceiverKind;
  /** Different events. */
  readonly received: number;
  readonly inOrder: boolean;
  /** Milliseconds since 1970. */
  readonly lastAtMs: number;
}

/** Receivers as a process: `node webhook-receivers.ts healthy healthy dead …`; reports on request. */
const slowMs = 1_000;
const kinds = process.argv.slice(2) as ReceiverKind[];
const receivers = await Promise.all(kinds.map(start));
process.send?.({ urls: receivers.map(({ url }) => url) });
process.on('message', () => process.send?.({ reports: receivers.map(({ report }) => report()) }));
process.on('disconnect', () => process.exit(0));

async function start(kind: ReceiverKind): Promise<{ url: string; report: () => ReceiverReport }> {
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
  return { url, report: () => ({ url, kind, received: seen.size, inOrder, lastAtMs }) };
}
