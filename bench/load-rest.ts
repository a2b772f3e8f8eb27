import { connect, type Socket } from 'node:net';
import { type AnswerKind, expectedOf, type LoadJob, type LoadResult } from './load-job.ts';
import { RequestReader } from './request-file.ts';
import { Tally } from './tally.ts';

/** REST, one request at a time on each of many kept connections. */
export async function loadRest(job: LoadJob): Promise<LoadResult> {
  const readers = Array.from(job.apiKeys, (_, signer) => new RequestReader(job.file, signer, job.from, job.to));
  const connections = await Promise.all(
    readers.flatMap((reader) => Array.from({ length: job.inFlight }, () => openConnection(job.port, reader))),
  );
  const tally = new Tally(expectedOf(job));
  for (const connection of connections) connection.begin(tally);
  const result = await tally.finished;
  for (const connection of connections) connection.close();
  return result;
}

function openConnection(port: number, reader: RequestReader): Promise<RestConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.once('error', reject).once('connect', () => resolve(new RestConnection(socket, reader)));
  });
}

const headEnd = Buffer.from('\r\n\r\n');
const lengthHeader = 'content-length: ';

class RestConnection {
  readonly #socket: Socket;
  readonly #reader: RequestReader;
  #tally: Tally | null = null;
  #received: Buffer | null = null;
  #sentMs = 0;

  constructor(socket: Socket, reader: RequestReader) {
    this.#socket = socket;
    this.#reader = reader;
    socket.on('data', (chunk) => this.#take(chunk));
  }

  begin(tally: Tally): void {
    this.#tally = tally;
    this.#send();
  }

  close(): void {
    this.#socket
      .removeAllListeners()
      .on('error', () => {})
      .destroy();
  }

  #send(): void {
    const request = this.#reader.next();
    if (request === null) return;
    this.#sentMs = performance.now();
    // The reader writes over its block as soon as it reads on.
    this.#socket.write(Buffer.from(request));
    if (this.#reader.left === 0) this.#tally?.draining();
  }

  #take(chunk: Buffer): void {
    const bytes = this.#received === null ? chunk : Buffer.concat([this.#received, chunk]);
    const length = answerBytes(bytes);
    if (length === null || bytes.length < length) {
      this.#received = bytes;
      return;
    }
    this.#received = null;
    this.#tally?.answer(answerKindOf(bytes), this.#sentMs, () => bytes.toString('latin1'));
    this.#send();
  }
}

/** Length of the whole answer; null while that is not known. */
function answerBytes(bytes: Buffer): number | null {
  const end = bytes.indexOf(headEnd);
  if (end < 0) return null;
  const head = bytes.toString('latin1', 0, end).toLowerCase();
  const at = head.indexOf(lengthHeader);
  if (at < 0) throw new Error(`an answer without a length: ${head}`);
  return end + headEnd.length + Number.parseInt(head.slice(at + lengthHeader.length), 10);
}

/** `HTTP/1.1 200`, or 401 with the code of a wrong signature. */
function answerKindOf(answer: Buffer): AnswerKind {
  const status = answer.toString('latin1', 9, 12);
  if (status === '200') return 'accepted';
  return status === '401' && answer.includes('"invalid_signature"') ? 'refused' : 'failed';
}
