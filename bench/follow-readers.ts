import { connect, type Socket } from 'node:net';
import { answerJobs } from './forked.ts';

/** What a process of followers reads. */
export interface ReadersJob {
  readonly port: number;
  /** What each follows, and the API key that it sends. */
  readonly streams: readonly { readonly ledgerId: string; readonly apiKey: string }[];
}

export interface ReadersReport {
  /** Streams whose head has arrived with status 200. */
  readonly open: number;
  readonly ended: number;
  readonly events: number;
}

/**
 * Followers as a process: raw sockets that count what comes, because the readers take the same two cores as the server.
 * It answers a job when all of them follow, and reports on request.
 */
const openAtOnce = 100;
const marker = Buffer.from('event: event');
const counts = { open: 0, ended: 0, events: 0 };

answerJobs(async (job: ReadersJob | 'report'): Promise<ReadersReport> => {
  if (job !== 'report') await openAll(job);
  return counts;
});

async function openAll({ port, streams }: ReadersJob): Promise<void> {
  for (let at = 0; at < streams.length; at += openAtOnce)
    await Promise.all(streams.slice(at, at + openAtOnce).map((stream) => open(port, stream)));
}

function open(port: number, { ledgerId, apiKey }: ReadersJob['streams'][number]): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(
        `GET /v1/ledgers/${ledgerId}/events/follow HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${apiKey}\r\n\r\n`,
      ),
    );
    let isOpen = false;
    socket.on('data', (chunk) => {
      if (!isOpen) {
        if (!chunk.subarray(0, 12).equals(Buffer.from('HTTP/1.1 200'))) return reject(new Error(chunk.toString()));
        isOpen = true;
        counts.open += 1;
        resolve(socket);
      }
      for (let at = chunk.indexOf(marker); at >= 0; at = chunk.indexOf(marker, at + 1)) counts.events += 1;
    });
    socket.on('error', reject);
    socket.on('close', () => {
      counts.ended += 1;
    });
  });
}
