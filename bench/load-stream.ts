import { Http2Connection, type Http2Receiver } from './http2-connection.ts';
import { frameHeadBytes, streamIdAt } from './http2-frames.ts';
import { expectedOf, type LoadJob, type LoadResult, type Verdict } from './load-job.ts';
import { LaneReader } from './request-file.ts';
import { Tally } from './tally.ts';
import { firstClientIndex, streamHeaders } from './wire.ts';

const connectionCount = 4;

/** The gRPC stream: one stream a key, each with a few events open. */
export async function loadStream(job: LoadJob): Promise<LoadResult> {
  const perConnection = job.apiKeys.length / connectionCount;
  const connections = Array.from({ length: connectionCount }, () => new StreamConnection(job.port));
  const tally = new Tally(expectedOf(job));
  for (const [lane, apiKey] of job.apiKeys.entries()) {
    const reader = new LaneReader(job.file, lane, job.from, job.to);
    connections[Math.floor(lane / perConnection)]?.add(new Lane(reader, job.from, job.inFlight, tally), apiKey);
  }
  for (const connection of connections) connection.flush();
  const result = await tally.finished;
  for (const connection of connections) connection.close();
  return result;
}

/** A stream of one key. */
class Lane {
  readonly reader: LaneReader;
  readonly #tally: Tally;
  readonly #inFlight: number;
  readonly #sentMs: Float64Array;
  #sent: number;
  open = 0;
  rest: Buffer | null = null;

  constructor(reader: LaneReader, from: number, inFlight: number, tally: Tally) {
    this.reader = reader;
    this.#tally = tally;
    this.#inFlight = inFlight;
    // Outcomes of several ledgers come in any order: far fewer than this are open between two of one lane.
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
    const verdict: Verdict = isAppended ? 'accepted' : message.includes('invalid_signature') ? 'refused' : 'failed';
    const sentMs = this.#sentMs[(clientIndex - firstClientIndex) % this.#sentMs.length] ?? 0;
    this.open -= 1;
    this.#tally.answer(verdict, sentMs, () => message.toString('latin1'));
  }
}

class StreamConnection implements Http2Receiver {
  readonly #connection: Http2Connection;
  readonly #lanes = new Map<number, Lane>();

  constructor(port: number) {
    this.#connection = new Http2Connection(port, this);
  }

  add(lane: Lane, apiKey: string): void {
    this.#lanes.set(this.#connection.open(streamHeaders(apiKey)), lane);
  }

  close(): void {
    this.#connection.close();
  }

  data(streamId: number, bytes: Buffer): void {
    const lane = this.#lanes.get(streamId);
    if (lane === undefined) return;
    lane.take(bytes);
    if (lane.mayFill) this.#fill(streamId, lane);
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
    for (const [streamId, lane] of this.#lanes) if (lane.mayFill) this.#fill(streamId, lane);
  }

  /** Sends what a stream may have open, in one piece. */
  #fill(streamId: number, lane: Lane): void {
    const requests: Buffer[] = [];
    const nowMs = performance.now();
    while (lane.mayOpen && lane.reader.left > 0) {
      const bytes = lane.reader.recordBytes - frameHeadBytes;
      if (!this.#connection.takeWindow(streamId, bytes)) break;
      const request = lane.reader.next();
      if (request === null) break;
      request.writeUInt32BE(streamId, streamIdAt);
      requests.push(Buffer.from(request));
      lane.sent(nowMs);
    }
    if (lane.reader.left === 0) lane.drain();
    if (requests.length > 0)
      this.#connection.write(requests.length === 1 ? (requests[0] as Buffer) : Buffer.concat(requests));
  }
}
