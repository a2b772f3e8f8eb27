import { create } from '@bufbuild/protobuf';
import type { ClientDuplexStream } from '@grpc/grpc-js';
import type { CommandOutcome } from '../../src/actors/inbox/outcome.ts';
import { PeerUnreachable } from '../../src/actors/routing/peers.ts';
import { LedgerError } from '../../src/domain/errors.ts';
import { ExchangeRequestSchema, type ExchangeResponse } from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import type { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { outOfMemoryBudget } from '../../src/service/limits/out-of-memory-budget.ts';
import { outcomeIn, showsWork } from './answers.ts';
import type { CountedTime } from './counted-time.ts';
import { commandKind, commandMaxBytes } from './exchange-method.ts';
import { Outgoing } from './outgoing.ts';
import type { ClientWire } from './wire.ts';

/** Bounds of what may wait for one node. Commands beyond them are refused as `overloaded`. */
export interface PeerBounds {
  /** Commands without an answer (PEER_COMMANDS_MAX). */
  readonly commandsMax: number;
  /** Bytes of commands that are not sent yet (PEER_UNSENT_MIB). */
  readonly unsentBytesMax: number;
}

export const defaultPeerBounds: PeerBounds = Object.freeze({ commandsMax: 16_384, unsentBytesMax: 64 * 1024 * 1024 });
const sweepEveryMs = 50;

interface Waiting {
  readonly resolve: (outcome: CommandOutcome) => void;
  readonly reject: (error: Error) => void;
  /** When the command was asked, in time that counts (CountedTime). */
  readonly sentAt: number;
  /** When the command is given up although the peer gets others done. Monotonic, ms. */
  readonly until: number;
  /** null once the command was sent. */
  text: string | null;
  readonly bytes: number;
}

export type ExchangeCall = ClientDuplexStream<Buffer, Buffer>;

interface PeerStreamParts {
  readonly call: ExchangeCall;
  readonly wire: ClientWire;
  readonly memory: MemoryBudget;
  readonly bounds: PeerBounds;
  readonly monotonicMs: () => number;
  /** The time that counts against the peer. */
  readonly counted: CountedTime;
  /**
   * How long the peer may get no command done (`showsWork`, `works`), in time that counts. Then the commands that have
   * waited for this long are given up. If nothing was done since one of them was asked, the stream fails.
   */
  readonly budgetMs: number;
  /** How long a command waits if the peer gets others done, or if the time does not count. */
  readonly busyPeerBudgetMs: number;
  /** Called for each head of a ledger that the peer tells. */
  readonly heard: (ledgerId: string, seq: number) => void;
  /** Called once, when the stream has ended. `failed` is false if the other side ended the stream in order. */
  readonly ended: (failed: boolean) => void;
}

/**
 * One stream to another node, with the commands that wait for its answers. Invariants:
 * - Nothing is sent before the other side has accepted the stream and proved that it is the expected node. So a command
 *   that was not sent has certainly not arrived.
 * - Commands are sent in the order in which they were asked.
 * - Each command is settled once.
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
  /** When the peer last showed that it gets commands done, in time that counts. */
  #workedAt: number;

  constructor(parts: PeerStreamParts) {
    this.#parts = parts;
    this.#begunAt = parts.monotonicMs();
    this.#workedAt = parts.counted.at(this.#begunAt);
    const sizeOf = (id: number) => this.#waiting.get(id)?.bytes ?? 0;
    this.#outgoing = new Outgoing((ids) => !this.#over && this.#write(ids), sizeOf, false);
    this.#sweep = setInterval(() => this.#lookForLate(), sweepEveryMs).unref();
    const { call } = parts;
    call.on('metadata', (metadata) => {
      if (this.#over) return;
      // What is not accepted ends the stream before grpc-js has gathered a message: it would hold all that arrives.
      this.#orFail(() => {
        parts.wire.accept(metadata);
        this.#accepted = true;
        // An empty request proves at once to the other side that this side is a node.
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

  get isAccepted(): boolean {
    return this.#accepted;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Has the peer run a command (`text`: its JSON). Rejects with the peer's LedgerError, with `overloaded` if too much
   * waits, with NotOwner, or with PeerUnreachable if the peer could not be asked or did not answer in time.
   */
  ask(text: string): Promise<CommandOutcome> {
    if (this.#over) return Promise.reject(new PeerUnreachable(new Error('the stream is over'), false));
    const bytes = Buffer.byteLength(text);
    // A larger command would end the stream for all others. The caller runs it on this node instead.
    if (bytes > commandMaxBytes)
      return Promise.reject(new PeerUnreachable(new Error('the command fits no message'), false));
    const { bounds, memory } = this.#parts;
    if (this.#waiting.size >= bounds.commandsMax) return Promise.reject(tooMany('PEER_COMMANDS_MAX'));
    if (this.#unsentBytes + bytes > bounds.unsentBytesMax) return Promise.reject(tooMany('PEER_UNSENT_MIB'));
    if (!memory.hold(commandKind(bytes), bytes)) return Promise.reject(outOfMemoryBudget());
    return new Promise((resolve, reject) => {
      this.#lastId = (this.#lastId % 0xffff_fffe) + 1;
      const now = this.#parts.monotonicMs();
      const [sentAt, until] = [this.#parts.counted.at(now), now + this.#parts.busyPeerBudgetMs];
      this.#waiting.set(this.#lastId, { resolve, reject, sentAt, until, text, bytes });
      this.#unsentBytes += bytes;
      this.#outgoing.push(this.#lastId);
    });
  }

  /** Says of which ledgers this node wants to hear, and of which not any more. false: the stream is not open. */
  watchHeads(watch: readonly string[], unwatch: readonly string[] = []): boolean {
    if (this.#over || !this.#accepted) return false;
    const { call, wire } = this.#parts;
    const request = { watch: [...watch], unwatch: [...unwatch] };
    this.#orFail(() => void call.write(wire.seal(create(ExchangeRequestSchema, request))));
    return true;
  }

  /** Runs a step. The stream fails if it throws. */
  #orFail(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #letGo(waiting: Waiting): void {
    if (waiting.text === null) return;
    waiting.text = null;
    this.#unsentBytes -= waiting.bytes;
    this.#parts.memory.release(commandKind(waiting.bytes), waiting.bytes);
  }

  /** Ends the stream because of a fault. Sent commands may have arrived; the others have not. */
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
      // Given up before it could be sent.
      if (waiting === undefined || waiting.text === null) continue;
      asks.push({ id, command: waiting.text });
      this.#letGo(waiting);
    }
    const { call, wire } = this.#parts;
    return asks.length === 0 || call.write(wire.seal(create(ExchangeRequestSchema, { asks })));
  }

  #hear({ answers, works, heads }: ExchangeResponse): void {
    for (const { ledgerId, seq } of heads) this.#parts.heard(ledgerId, Number(seq));
    // A late answer counts as work too.
    if (works || answers.some(showsWork)) this.#workedAt = this.#parts.counted.at(this.#parts.monotonicMs());
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.id);
      // A command that was not sent cannot have an answer.
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
      // The map is in the order of asking: later commands have not waited longer.
      if (sentAt > budgetAgo && until > now) break;
      if (!isStuck && until > now) continue;
      this.#waiting.delete(id);
      this.#letGo(waiting);
      reject(new PeerUnreachable(new Error('no answer in time'), text === null));
      isGone ||= isStuck && this.#workedAt <= sentAt;
    }
    // The peer got nothing done during the whole wait of a command.
    if (isGone) this.fail(new Error('the peer carries nothing out'));
  }
}

function tooMany(bound: string): LedgerError {
  const message = 'Too many calls wait for another node; nothing was written, retry in a moment.';
  return new LedgerError('overloaded', message, { bound });
}
