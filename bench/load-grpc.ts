import { Http2Connection, type Http2Receiver } from './http2-connection.ts';
import { frameHeadBytes, frameType, streamIdAt } from './http2-frames.ts';
import { expectedOf, type LoadJob, type LoadResult } from './load-job.ts';
import { RequestReader } from './request-file.ts';
import { Tally } from './tally.ts';

const connectionCount = 4;

/** Unary gRPC: a call an event, many at a time on a few connections. */
export async function loadGrpc(job: LoadJob): Promise<LoadResult> {
  const readers = Array.from(job.apiKeys, (_, signer) => new RequestReader(job.file, signer, job.from, job.to));
  const perConnection = readers.length / connectionCount;
  const connections = Array.from({ length: connectionCount }, (_, at) => {
    return new UnaryConnection(job.port, readers.slice(at * perConnection, (at + 1) * perConnection), job.inFlight);
  });
  const tally = new Tally(expectedOf(job));
  for (const connection of connections) connection.begin(tally);
  const result = await tally.finished;
  for (const connection of connections) connection.close();
  return result;
}

interface OpenCall {
  readonly reader: RequestReader;
  readonly sentMs: number;
  /** A message came: the call succeeded. A refused one has none. */
  answered: boolean;
}

class UnaryConnection implements Http2Receiver {
  readonly #connection: Http2Connection;
  readonly #readers: readonly RequestReader[];
  readonly #inFlight: number;
  readonly #calls = new Map<number, OpenCall>();
  #waiting: { reader: RequestReader; request: Buffer }[] = [];
  #ready: RequestReader[] = [];
  #tally: Tally | null = null;

  constructor(port: number, readers: readonly RequestReader[], inFlight: number) {
    this.#readers = readers;
    this.#inFlight = inFlight;
    this.#connection = new Http2Connection(port, this);
  }

  begin(tally: Tally): void {
    this.#tally = tally;
    for (const reader of this.#readers) for (let at = 0; at < this.#inFlight; at++) this.#ready.push(reader);
    this.#flush();
  }

  close(): void {
    this.#connection.close();
  }

  data(streamId: number): void {
    const call = this.#calls.get(streamId);
    if (call !== undefined) call.answered = true;
  }

  headers(streamId: number, endStream: boolean): void {
    if (endStream) this.#finish(streamId, null);
  }

  reset(streamId: number): void {
    this.#finish(streamId, 'the call was reset');
  }

  writable(): void {
    this.#flush();
  }

  #finish(streamId: number, failure: string | null): void {
    const call = this.#calls.get(streamId);
    if (call === undefined) return;
    this.#calls.delete(streamId);
    const kind = failure !== null ? 'failed' : call.answered ? 'accepted' : 'refused';
    this.#tally?.answer(kind, call.sentMs, () => failure ?? '');
    if (this.#ready.length === 0) queueMicrotask(() => this.#flush());
    this.#ready.push(call.reader);
  }

  /** Sends what became ready while one piece of answers was read, in one piece. */
  #flush(): void {
    this.#connection.cork();
    const ready = this.#ready;
    this.#ready = [];
    for (const reader of ready) {
      const request = reader.next();
      if (request !== null) this.#waiting.push({ reader, request: Buffer.from(request) });
      if (reader.left === 0) this.#tally?.draining();
    }
    const waiting = this.#waiting;
    let sent = 0;
    for (const { reader, request } of waiting) {
      if (!this.#send(reader, request)) break;
      sent += 1;
    }
    this.#waiting = sent === waiting.length ? [] : waiting.slice(sent);
    this.#connection.uncork();
  }

  #send(reader: RequestReader, request: Buffer): boolean {
    const dataAt = frameHeadBytes + request.readUIntBE(0, 3);
    if (request[dataAt + 3] !== frameType.data) throw new Error('a request is HEADERS and DATA');
    if (!this.#connection.takeWindow(0, request.length - dataAt - frameHeadBytes)) return false;
    const streamId = this.#connection.takeStreamId();
    request.writeUInt32BE(streamId, streamIdAt);
    request.writeUInt32BE(streamId, dataAt + streamIdAt);
    this.#calls.set(streamId, { reader, sentMs: performance.now(), answered: false });
    this.#connection.write(request);
    return true;
  }
}
