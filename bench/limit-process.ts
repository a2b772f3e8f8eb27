import { createServer } from 'node:http';
import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { open } from 'lmdb';
import { sumOf } from './sum.ts';
import { signaturesOf, verifyFor } from './verifications.ts';

/** What this machine can do without any service, measured in a process of its own. */
export type LimitJob =
  | { readonly kind: 'verifications'; readonly seconds: number; readonly keys: number }
  | { readonly kind: 'lmdb'; readonly seconds: number; readonly directory: string; readonly rowBytes: number };

/** Events of a commit of the service. */
const putsAtOnce = 64;

/** Ed25519 verifications, a thread a core. */
async function verifications(seconds: number, keys: number): Promise<number> {
  const workers = Array.from(
    { length: availableParallelism() },
    () => new Worker(new URL(import.meta.url), { workerData: { seconds, keys } }),
  );
  const counts = await Promise.all(
    workers.map((worker) => new Promise<number>((resolve) => worker.once('message', resolve))),
  );
  return sumOf(counts, (count) => count) / seconds;
}

/** Durable puts of rows like the service's, as many in a commit, one commit at a time. */
async function lmdbPuts(seconds: number, directory: string, rowBytes: number): Promise<number> {
  const db = open<string, Buffer>({
    path: directory,
    noSubdir: false,
    overlappingSync: false,
    pageSize: 8_192,
    encoding: 'string',
    keyEncoding: 'binary',
  });
  const row = 'r'.repeat(rowBytes);
  const end = performance.now() + seconds * 1_000;
  const started = performance.now();
  let count = 0;
  while (performance.now() < end) {
    await db.batch(() => {
      for (let at = 0; at < putsAtOnce; at++) {
        const key = Buffer.alloc(8);
        key.writeUIntBE(count, 2, 6);
        db.put(key, row);
        count += 1;
      }
    });
  }
  const perSecond = (count / (performance.now() - started)) * 1_000;
  await db.close();
  return perSecond;
}

/** A bare HTTP server that says back what it was told, until its standard input ends. */
function echo(): void {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      response.writeHead(200, ['content-type', 'application/json', 'content-length', String(body.length)]);
      response.end(body);
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`);
  });
  process.stdin.on('end', () => process.exit(0)).resume();
}

if (!isMainThread) {
  const { seconds, keys } = workerData as { seconds: number; keys: number };
  parentPort?.postMessage(verifyFor(seconds, signaturesOf(keys)).count);
} else if (process.argv[2] === 'echo') {
  echo();
} else {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
  const job = JSON.parse(text) as LimitJob;
  const result =
    job.kind === 'verifications'
      ? await verifications(job.seconds, job.keys)
      : await lmdbPuts(job.seconds, job.directory, job.rowBytes);
  process.stdout.write(JSON.stringify(result));
}
