import { Http2Connection, type Http2Receiver } from './http2-connection.ts';
import { frameHeadBytes, streamIdAt } from './http2-frames.ts';
import { type AnswerKind, expectedOf, type LoadJob, type LoadResult } from './load-job.ts';
import { RequestReader } from './request-file.ts';
import { Tally } from './tally.ts';
import { firstClientIndex, streamHeaders } from './wire.ts';

const connectionCount = 4;

/** The gRPC stream: one stream a key, each with a few events open. */
export async function loadStream(job: LoadJob): Promise<LoadResult> {
  const perConnection = job.apiKeys.length / connectionCount;
  const connections = Array.from({ length: connectionCount }, () => new StreamConnection(job.port));
  const tally = new Tally(expectedOf(job));
  for (const [signer, apiKey] of job.apiKeys.entries()) {
    const reader = new RequestReader(job.file, signer, job.from, job.to);
    const stream = new SignerStream(reader, job.from, job.inFlight, tally);
    connections[Math.floor(signer / perConnection)]?.add(stream, apiKey);
  }
  for (const connection of connections) connection.flush();
  const result = await tally.finished;
  for (const connection of connections) connection.close();
  return result;
}

/** The stream of one signer. */
class SignerStream {
  readonly reader: RequestReader;
  readonly #tally: Tally;
  readonly #inFlight: number;
  readonly #sentMs: Float64Array;
  #sent: number;
  open = 0;
  rest: Buffer | null = null;

  constructor(reader: RequestReader, from: number, inFlight: number, tally: Tally) {
    this.reader = reader;
    this.#tally = tally;
    this.#inFlight = inFlight;
    // Outcomes of several ledgers come in any order: far fewer than this are open between two of one signer.
    this.#sentMs = new Float64Array(4_096);
    this.#sent = from;
  }

  get mayFill(): boolean {
    return this.open <= this.#inFlight / 2 && this.reader.left > 0;
  }

  get mayOpen(): boolean {
    return this.open < this.#inFlight;
  }

  sent(nowMs: number): void {
    this.#sentMs[this.#sent % this.#sentMs.length] = nowMs;
    this.#sent += 1;
    this.open += 1;
  }

  /** All of it is sent. */
  drain(): void {
    this.#tally.draining();
  }

  /** Reads the outcomes in a piece of the stream. A message may be cut anywhere. */
  take(piece: Buffer): void {
    const bytes = this.rest === null ? piece : Buffer.concat([this.rest, piece]);
    let at = 0;
    while (bytes.length - at >= 5) {
      const length = bytes.readUInt32BE(at + 1);
      if (bytes.length - at < 5 + length) break;
      this.#outcome(bytes.subarray(at + 5, at + 5 + length));
      at += 5 + length;
    }
    this.rest = at === bytes.length ? null : Buffer.from(bytes.subarray(at));
  }

  /** client_index (field 1), then appended (2) or error (3). */
  #outcome(message: Buffer): void {
    let at = 1;
    let clientIndex = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++] ?? 0;
      clientIndex |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    const isAppended = message[at] === 0x12;
    const kind: AnswerKind = isAppended ? 'accepted' : message.includes('invalid_signature') ? 'refused' : 'failed';
    const sentMs = this.#sentMs[(clientIndex - firstClientIndex) % this.#sentMs.length] ?? 0;
    this.open -= 1;
    this.#tally.answer(kind, sentMs, () => message.toString('latin1'));
  }
}

class StreamConnection implements Http2Receiver {
  readonly #connection: Http2Connection;
  readonly #streams = new Map<number, SignerStream>();

  constructor(port: number) {
    this.#connection = new Http2Connection(port, this);
  }

  add(stream: SignerStream, apiKey: string): void {
    this.#streams.set(this.#connection.open(streamHeaders(apiKey)), stream);
  }

  close(): void {
    this.#connection.close();
  }

  data(streamId: number, bytes: Buffer): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    stream.take(bytes);
    if (stream.mayFill) this.#fill(streamId, stream);
  }

  headers(streamId: number, endStream: boolean): void {
    if (endStream) throw new Error(`stream ${streamId} was ended by the server`);
  }

  reset(streamId: number): void {
    throw new Error(`stream ${streamId} was reset by the server`);
  }

  writable(): void {
    this.flush();
  }

  flush(): void {
    for (const [streamId, stream] of this.#streams) if (stream.mayFill) this.#fill(streamId, stream);
  }

  /** Sends what a stream may have open, in one piece. */
  #fill(streamId: number, stream: SignerStream): void {
    const requests: Buffer[] = [];
    const nowMs = performance.now();
    while (stream.mayOpen && stream.reader.left > 0) {
      const bytes = stream.reader.recordBytes - frameHeadBytes;
      if (!this.#connection.takeWindow(streamId, bytes)) break;
      const request = stream.reader.next();
      if (request === null) break;
      request.writeUInt32BE(streamId, streamIdAt);
      requests.push(Buffer.from(request));
      stream.sent(nowMs);
    }
    if (stream.reader.left === 0) stream.drain();
    if (requests.length > 0)
      this.#connection.write(requests.length === 1 ? (requests[0] as Buffer) : Buffer.concat(requests));
  }
}
