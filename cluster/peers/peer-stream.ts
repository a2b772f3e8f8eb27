import { create } from '@bufbuild/protobuf';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { CommandOutcome } from '../../src/actors/outcome.ts';
import { PeerUnreachable } from '../../src/actors/peers.ts';
import { LedgerError } from '../../src/domain/errors.ts';
import { ExchangeRequestSchema, type ExchangeResponse } from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { type MemoryBudget, outOfMemoryBudget } from '../../src/runtime/memory-budget.ts';
import { outcomeIn, showsWork } from './answers.ts';
import type { CountedTime } from './counted-time.ts';
import { commandMaxBytes } from './exchange-method.ts';
import { Outgoing } from './outgoing.ts';
import { acceptedKey, type ClientWire } from './wire.ts';

/** What may wait for one node; beyond it callers are refused instead of held. */
export interface PeerBounds {
  /** Commands that have no answer yet (PEER_COMMANDS_MAX). */
  readonly commandsMax: number;
  /** What of them was not sent yet: a peer that reads nothing on must not fill this node's memory with large ones (PEER_UNSENT_MIB). */
  readonly unsentBytesMax: number;
}

export const defaultPeerBounds: PeerBounds = Object.freeze({ commandsMax: 16_384, unsentBytesMax: 64 * 1024 * 1024 });
/** How often it is looked whose time is up. */
const sweepEveryMs = 50;

interface Waiting {
  readonly resolve: (outcome: CommandOutcome) => void;
  readonly reject: (error: Error) => void;
  /** In time that counts. */
  readonly sentAt: number;
  /** Monotonic: when it is given up, though the peer goes on carrying out others. */
  readonly until: number;
  /** null once it was sent. */
  text: string | null;
  readonly bytes: number;
}

export type ExchangeCall = ClientDuplexStream<Buffer, Buffer>;

export interface PeerStreamParts {
  readonly call: ExchangeCall;
  readonly wire: ClientWire;
  readonly memory: MemoryBudget;
  readonly bounds: PeerBounds;
  readonly monotonicMs: () => number;
  /** The time that counts against the peer. */
  readonly counted: CountedTime;
  /** A peer that has carried nothing out for so long while something waits is given up, whatever else it says (`showsWork`, `works`): time that counts. */
  readonly budgetMs: number;
  /** How long an answer is waited for where the peer carries out others meanwhile, or the time does not count: it has much to do, and who took its ledgers from it would only add to that. */
  readonly patienceMs: number;
  /** Called once, when nothing more can be asked here. `failed`: by a fault, not because the other side ended it in order. */
  readonly ended: (failed: boolean) => void;
}

/**
 * One stream to another node, with what waits for its answers.
 *
 * Invariants: nothing is sent before the other side accepted the stream and proved that it is the node, so that what was not sent is certain not to have arrived;
 * commands are sent in the order in which they were asked; each is answered once.
 */
export class PeerStream {
  readonly #parts: PeerStreamParts;
  readonly #waiting = new Map<number, Waiting>();
  readonly #outgoing: Outgoing<number>;
  readonly #sweep: NodeJS.Timeout;
  readonly #begunAt: number;
  #accepted = false;
  #over = false;
  #lastId = 0;
  #unsentBytes = 0;
  /** When the peer last showed that it gets commands carried out, in time that counts. */
  #workedAt: number;

  constructor(parts: PeerStreamParts) {
    this.#parts = parts;
    this.#begunAt = parts.monotonicMs();
    this.#workedAt = parts.counted.at(this.#begunAt);
    const sizeOf = (id: number) => this.#waiting.get(id)?.bytes ?? 0;
    this.#outgoing = new Outgoing({ write: (ids) => !this.#over && this.#write(ids) }, sizeOf, false);
    this.#sweep = setInterval(() => this.#lookForLate(), sweepEveryMs).unref();
    const { call } = parts;
    call.on('metadata', (metadata) => {
      // What grpc-js ends a stream with that was not accepted may come as metadata too.
      if (metadata.get(acceptedKey).length === 0 || this.#over) return;
      this.#orFail(() => {
        parts.wire.accept(metadata);
        this.#accepted = true;
        // Shows the other side at once that this side is a node.
        call.write(parts.wire.seal(create(ExchangeRequestSchema, {})));
        this.#outgoing.drained();
      });
    });
    call.on('data', (frame: Buffer) => {
      if (!this.#over) this.#orFail(() => this.#hear(parts.wire.open(frame)));
    });
    call.on('drain', () => this.#outgoing.drained());
    call.on('error', (error) => this.fail(error));
    call.on('end', () => this.#end(new Error('the peer ended the stream'), false));
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** Whether the other side took the stream: until then nothing is sent. */
  get isAccepted(): boolean {
    return this.#accepted;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Asks for a command (as JSON) to be carried out, and waits for its outcome as long as the peer gets commands carried out. */
  ask(text: string): Promise<CommandOutcome> {
    if (this.#over) return Promise.reject(new PeerUnreachable(new Error('the stream is over'), false));
    const bytes = Buffer.byteLength(text);
    // It would end the stream, and with it all that is on it; the node that has it carries it out by itself.
    if (bytes > commandMaxBytes)
      return Promise.reject(new PeerUnreachable(new Error('the command fits no message'), false));
    const { bounds, memory } = this.#parts;
    if (this.#waiting.size >= bounds.commandsMax) return Promise.reject(tooMany('PEER_COMMANDS_MAX'));
    if (this.#unsentBytes + bytes > bounds.unsentBytesMax) return Promise.reject(tooMany('PEER_UNSENT_MIB'));
    if (!memory.tryHold('peer', bytes)) return Promise.reject(outOfMemoryBudget());
    return new Promise((resolve, reject) => {
      this.#lastId = (this.#lastId % 0xffff_fffe) + 1;
      const now = this.#parts.monotonicMs();
      const [sentAt, until] = [this.#parts.counted.at(now), now + this.#parts.patienceMs];
      this.#waiting.set(this.#lastId, { resolve, reject, sentAt, until, text, bytes });
      this.#unsentBytes += bytes;
      this.#outgoing.push(this.#lastId);
    });
  }

  /** Runs what may find that the other side is not the node that it must be: then the stream ends. */
  #orFail(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** A command waits to be sent no longer. */
  #letGo(waiting: Waiting): void {
    if (waiting.text === null) return;
    waiting.text = null;
    this.#unsentBytes -= waiting.bytes;
    this.#parts.memory.release('peer', waiting.bytes);
  }

  /** Ends it: what was sent may have arrived, the rest did not. */
  fail(error: Error): void {
    this.#end(error, true);
    this.#parts.call.cancel();
  }

  #end(error: Error, failed: boolean): void {
    if (this.#over) return;
    this.#over = true;
    clearInterval(this.#sweep);
    this.#parts.ended(failed);
    for (const waiting of this.#waiting.values()) {
      waiting.reject(new PeerUnreachable(error, waiting.text === null));
      this.#letGo(waiting);
    }
    this.#waiting.clear();
    if (!failed) this.#parts.call.end();
  }

  #write(ids: readonly number[]): boolean {
    const asks: { id: number; command: string }[] = [];
    for (const id of ids) {
      const waiting = this.#waiting.get(id);
      // Whose time was up before it could be sent is not sent.
      if (waiting === undefined || waiting.text === null) continue;
      asks.push({ id, command: waiting.text });
      this.#letGo(waiting);
    }
    const { call, wire } = this.#parts;
    return asks.length === 0 || call.write(wire.seal(create(ExchangeRequestSchema, { asks })));
  }

  #hear({ answers, works }: ExchangeResponse): void {
    // What comes too late for its command counts too.
    if (works || answers.some(showsWork)) this.#workedAt = this.#parts.counted.at(this.#parts.monotonicMs());
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.id);
      // What was not sent has no answer.
      if (waiting === undefined || waiting.text !== null) continue;
      this.#waiting.delete(answer.id);
      try {
        waiting.resolve(outcomeIn(answer));
      } catch (error) {
        waiting.reject(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  #lookForLate(): void {
    const { monotonicMs, counted, budgetMs } = this.#parts;
    const now = monotonicMs();
    const budgetAgo = counted.at(now) - budgetMs;
    if (!this.#accepted && this.#begunAt <= now - budgetMs) {
      this.fail(new Error('the peer does not take the stream'));
      return;
    }
    const isStuck = this.#workedAt <= budgetAgo;
    let isGone = false;
    for (const [id, waiting] of this.#waiting) {
      const { reject, text, until, sentAt } = waiting;
      // Asked in this order: whoever comes behind has waited no longer.
      if (sentAt > budgetAgo && until > now) break;
      if (!isStuck && until > now) continue;
      this.#waiting.delete(id);
      this.#letGo(waiting);
      reject(new PeerUnreachable(new Error('no answer in time'), text === null));
      isGone ||= isStuck && this.#workedAt <= sentAt;
    }
    // Nothing was carried out for the whole of a command's time: the others need not wait out theirs.
    if (isGone) this.fail(new Error('the peer carries nothing out'));
  }
}

function tooMany(bound: string): LedgerError {
  const message = 'Too many calls wait for another node; nothing was written, retry in a moment.';
  return new LedgerError('overloaded', message, { bound });
}
