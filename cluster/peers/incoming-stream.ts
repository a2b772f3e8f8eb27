import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { type ServerDuplexStream, status } from '@grpc/grpc-js';
import type { CommandOutcome } from '../../src/actors/inbox/outcome.ts';
import type { Command } from '../../src/domain/ledger/command.ts';
import {
  type AnswerSchema,
  type Ask,
  type ExchangeRequest,
  ExchangeResponseSchema,
} from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { MessageBeyondBounds } from '../../src/rpc/call/message-bounds.ts';
import { limits } from '../../src/runtime/limits/limits.ts';
import type { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { outOfMemoryBudget } from '../../src/service/limits/out-of-memory-budget.ts';
import { errorAnswer, heldBytes, outcomeAnswer, sizeOf } from './answers.ts';
import { commandKind } from './exchange-method.ts';
import type { HeadWatchers } from './head-watchers.ts';
import { Outgoing } from './outgoing.ts';
import type { ServerWire } from './wire.ts';
import { commandOf } from './wire-command.ts';
import { UnreadableCommand } from './wire-fields.ts';

/** At this number of running commands and waiting answers the stream is not read. */
const commandsMax = 8_192;
/** The same limit in bytes. The answers to one message of small commands may exceed it. */
const commandBytesMax = 16 * 1024 * 1024;
/** Answers that may wait for a peer that does not read. Beyond this the connection is closed. */
export const answerBytesMax = 32 * 1024 * 1024;
/** The connection is closed if the peer takes no message for this long. */
export const unreadMaxMs = 30_000;
/** How often this node reports to a waiting peer that it gets commands done. */
const tellWorkEveryMs = 500;
/** While so many messages wait for the peer, heads are not told: they would only be late. */
const unsentHeadsMax = 16;

export interface IncomingParts {
  /** Runs the command: Directory.carryOut. */
  readonly carryOut: (command: Command) => Promise<CommandOutcome>;
  /** Rejects with the LedgerError that the command is refused with if its signature does not verify. */
  readonly checkSignature: (command: Command) => Promise<void>;
  /** BatchCounts.stood of this node. */
  readonly turnsStood: () => number;
  readonly memory: MemoryBudget;
  readonly monotonicMs: () => number;
  /** Unix time, ms. */
  readonly now: () => number;
  /** The ledgers of which other nodes want to hear. */
  readonly watchers: HeadWatchers;
  /** Called for the first unreadable command of a stream. */
  readonly unreadable: (error: UnreadableCommand) => void;
  /** Called for a command that failed by a defect. Its causes are not sent, so the other node cannot log them. */
  readonly failed: (error: unknown) => void;
}

export interface Connection {
  /** Call it once the other side has proved that it is a node of this cluster. */
  readonly proved: () => void;
  readonly hangUp: () => void;
}

export type ExchangeCall = ServerDuplexStream<Buffer, Buffer>;
type AnswerInit = MessageInitShape<typeof AnswerSchema>;

/**
 * A stream that another node has opened. Invariants:
 * - Commands for one ledger are handed to the directory in the order in which they arrived.
 * - Each command is answered once, or the stream ends.
 * - The memory of the stream is bounded. It is counted in the node's budget until it is written or the stream ends.
 */
export class IncomingStream {
  readonly #parts: IncomingParts;
  readonly #call: ExchangeCall;
  readonly #wire: ServerWire;
  readonly #outgoing: Outgoing<AnswerInit>;
  readonly #telling: NodeJS.Timeout;
  readonly #hangUp: () => void;
  /** null once the other side has proved that it is a node. */
  #proved: (() => void) | null;
  #underWay = 0;
  #commandBytes = 0;
  #answerBytes = 0;
  /** Bytes in the memory budget. */
  readonly #held = { small: 0, peer: 0 };
  #stoodBefore: number;
  /** Messages that HTTP/2 has not taken yet, and when it last took one or got the first of them. */
  #unsentMessages = 0;
  #unsentSince = 0;
  #isUnreadableReported = false;
  /** By ledger: resolves when its commands so far are handed over. Absent if none waits. */
  readonly #handingOver = new Map<string, Promise<void>>();
  /** null until the peer wants to hear of a ledger. */
  #watcher: ReturnType<HeadWatchers['open']> | null = null;
  #ending = false;
  #over = false;

  constructor(parts: IncomingParts, call: ExchangeCall, wire: ServerWire, connection: Connection) {
    this.#parts = parts;
    this.#hangUp = connection.hangUp;
    this.#call = call;
    this.#wire = wire;
    this.#proved = connection.proved;
    this.#stoodBefore = parts.turnsStood();
    this.#outgoing = new Outgoing<AnswerInit>((answers) => this.#write(answers), sizeOf);
    this.#telling = setInterval(() => this.#look(), tellWorkEveryMs).unref();
    if (!wire.isProvedByFrame) this.#prove();
    call.on('data', (frame: Buffer) => this.#hear(frame));
    call.on('drain', () => this.#outgoing.drained());
    call.on('end', () => {
      this.#ending = true;
      this.#endIfDone();
    });
    for (const event of ['cancelled', 'error'] as const) call.on(event, () => this.#close());
  }

  #prove(): void {
    this.#proved?.();
    this.#proved = null;
  }

  #hear(frame: Buffer): void {
    if (this.#over) return;
    let asks: Ask[];
    try {
      const request = this.#wire.open(frame);
      asks = request.asks;
      this.#watchHeads(request);
    } catch (error) {
      if (error instanceof MessageBeyondBounds) this.#fail(status.INVALID_ARGUMENT, error.message);
      else this.#fail(status.UNAUTHENTICATED, 'Not a node of this cluster, or a frame that was changed on its way.');
      return;
    }
    this.#prove();
    for (const ask of asks) this.#take(ask);
    if (!this.#mayRead()) this.#call.pause();
  }

  #watchHeads({ watch, unwatch }: ExchangeRequest): void {
    if (watch.length + unwatch.length === 0) return;
    this.#watcher ??= this.#parts.watchers.open((heads) => this.#tellHeads(heads));
    for (const ledgerId of unwatch) this.#watcher.remove(ledgerId);
    for (const ledgerId of watch) this.#watcher.add(ledgerId);
  }

  /** Returns false if the peer reads too slowly to be told now. */
  #tellHeads(heads: readonly { readonly ledgerId: string; readonly seq: bigint }[]): boolean {
    if (this.#over || !this.#outgoing.isOpen || this.#unsentMessages >= unsentHeadsMax) return false;
    this.#send({ heads: [...heads] }, 0);
    return true;
  }

  #take({ id, command: text }: Ask): void {
    // An earlier command of the same message may have ended the stream. What is held now would never be released.
    if (this.#over) return;
    const bytes = heldBytes(text.length);
    this.#underWay++;
    const kind = commandKind(bytes);
    if (!this.#parts.memory.hold(kind, bytes)) {
      this.#answer(errorAnswer(id, outOfMemoryBudget()));
      return;
    }
    this.#held[kind] += bytes;
    this.#commandBytes += bytes;
    const answer = (given: AnswerInit) => {
      this.#commandBytes -= bytes;
      this.#release(kind, bytes);
      this.#answer(given);
    };
    this.#carry(text).then(
      (outcome) => answer(outcomeAnswer(id, outcome)),
      (error: unknown) => {
        const given = errorAnswer(id, error);
        if (given.result?.case === 'refusal' && given.result.value.code === 'internal') this.#parts.failed(error);
        answer(given);
      },
    );
  }

  /** Hands a command to the directory once its signature is verified and the ledger's earlier commands are settled. */
  async #carry(text: string): Promise<CommandOutcome> {
    const { carryOut, checkSignature } = this.#parts;
    const command = this.#read(text);
    const { ledgerId, signature } = command;
    const before = this.#handingOver.get(ledgerId);
    if (signature === null && before === undefined) return carryOut(command);
    const checked = checkSignature(command);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#handingOver.set(ledgerId, promise);
    try {
      await Promise.allSettled([before, checked]);
      await checked;
      return carryOut(command);
    } finally {
      if (this.#handingOver.get(ledgerId) === promise) this.#handingOver.delete(ledgerId);
      resolve();
    }
  }

  #read(text: string): Command {
    try {
      const command = commandOf(text);
      // No caller waits longer, and a command must not occupy a ledger beyond its caller.
      const latest = this.#parts.now() + limits.callTimeoutMs;
      return command.deadline > latest ? { ...command, deadline: latest } : command;
    } catch (error) {
      if (error instanceof UnreadableCommand && !this.#isUnreadableReported) {
        this.#isUnreadableReported = true;
        this.#parts.unreadable(error);
      }
      throw error;
    }
  }

  #answer(given: AnswerInit): void {
    this.#underWay--;
    if (this.#over) return;
    const bytes = sizeOf(given);
    // The command has ended, so the answer cannot be refused any more: it is counted even beyond the budget.
    this.#parts.memory.add('peer', bytes);
    this.#held.peer += bytes;
    this.#answerBytes += bytes;
    if (this.#answerBytes > answerBytesMax) {
      this.#giveUp();
      return;
    }
    this.#outgoing.push(given);
    this.#readOn();
    this.#endIfDone();
  }

  #write(answers: AnswerInit[]): boolean {
    if (this.#over) return false;
    let bytes = 0;
    for (const given of answers) bytes += sizeOf(given);
    return this.#send({ answers }, bytes);
  }

  /**
   * Sends a message, which holds `bytes` until HTTP/2 has taken it. Returns false if no more should be sent for now.
   */
  #send(message: MessageInitShape<typeof ExchangeResponseSchema>, bytes: number): boolean {
    const { monotonicMs } = this.#parts;
    if (this.#unsentMessages++ === 0) this.#unsentSince = monotonicMs();
    return this.#call.write(this.#wire.seal(create(ExchangeResponseSchema, message)), () => {
      this.#unsentMessages--;
      this.#unsentSince = monotonicMs();
      this.#answerBytes -= bytes;
      this.#release('peer', bytes);
      this.#readOn();
    });
  }

  #release(kind: 'small' | 'peer', bytes: number): void {
    if (this.#over) return;
    this.#held[kind] -= bytes;
    this.#parts.memory.release(kind, bytes);
  }

  #mayRead(): boolean {
    return (
      this.#underWay + this.#outgoing.size < commandsMax && this.#commandBytes + this.#answerBytes < commandBytesMax
    );
  }

  #readOn(): void {
    if (!this.#over && this.#call.isPaused() && this.#mayRead()) this.#call.resume();
  }

  #look(): void {
    const { turnsStood, monotonicMs } = this.#parts;
    const stood = turnsStood();
    const works = stood !== this.#stoodBefore;
    this.#stoodBefore = stood;
    const isStuck = this.#unsentMessages > 0 && this.#unsentSince <= monotonicMs() - unreadMaxMs;
    if (isStuck) this.#giveUp();
    else if (works && this.#underWay > 0 && this.#outgoing.isOpen) this.#send({ works }, 0);
  }

  #endIfDone(): void {
    if (!this.#ending || this.#underWay > 0 || this.#over) return;
    this.#outgoing.flush();
    if (this.#outgoing.size > 0) return;
    this.#close();
    this.#call.end();
  }

  #fail(code: status, details: string): void {
    if (this.#over) return;
    this.#close();
    this.#call.emit('error', { code, details });
  }

  /** Closes the connection to a peer that does not read. */
  #giveUp(): void {
    this.#close();
    this.#hangUp();
  }

  #close(): void {
    if (this.#over) return;
    clearInterval(this.#telling);
    this.#watcher?.[Symbol.dispose]();
    this.#release('small', this.#held.small);
    this.#release('peer', this.#held.peer);
    this.#over = true;
  }
}
