import { Client } from '@grpc/grpc-js';
import type { BatchCounts } from '../../src/actors/batching/batch-window.ts';
import type { CommandOutcome } from '../../src/actors/inbox/outcome.ts';
import { outcomeFault } from '../../src/actors/routing/peer-outcome-check.ts';
import { NotOwner, type Peers, PeerUnreachable } from '../../src/actors/routing/peers.ts';
import type { NodeId } from '../../src/actors/routing/placement.ts';
import type { Command } from '../../src/domain/ledger/command.ts';
import { limits } from '../../src/runtime/limits/limits.ts';
import type { MemoryBudget } from '../../src/runtime/limits/memory-budget.ts';
import { membersMax } from '../placement/members.ts';
import { nodeTarget } from '../placement/node-address.ts';
import { CountedTime } from './counted-time.ts';
import { answersFrameMaxBytes, commandsFrameMaxBytes, exchangeMethod } from './exchange-method.ts';
import { defaultPeerBounds, type PeerBounds, PeerStream } from './peer-stream.ts';
import { channelCredentials, type PeerSecurity } from './security.ts';
import { clientWire } from './wire.ts';
import { commandText } from './wire-command.ts';

/**
 * If a node gets no command done for this long, its commands run here. Far longer than a write. Time in which this node
 * or its store stands still does not count (CountedTime).
 */
export const budgetMs = 2_500;
/**
 * How long a command waits for a node that gets other commands done, or while the store confirms nothing to this node
 * either. Longer than any caller waits: taking over the ledgers of an overloaded node would only add to its load.
 */
export const busyPeerBudgetMs = limits.callTimeoutMs + 2_000;
/** Pause after a failure before a new stream to the node is opened. */
const restMs = 500;
/**
 * Streams at once whose other side has not proved yet that it is the expected node: as many as a cluster has nodes,
 * since one turn may ask all of them. Addresses are read from Redis, where others may write, and each costs a channel
 * of grpc-js.
 */
export const unprovenStreamsMax = membersMax;
/** A connection on which nothing comes back is dropped within twice this time. */
const keepaliveMs = 2_000;

export interface PeerMeter {
  /** Called once for each forwarded command. `wrong_answer`: the event in the answer does not fit the command. */
  forwarded(result: 'answered' | 'not_owner' | 'unreachable' | 'wrong_answer'): void;
}

interface GrpcPeersParts {
  readonly self: NodeId;
  readonly memory: MemoryBudget;
  readonly bounds?: PeerBounds;
  readonly security: PeerSecurity;
  /** Returns the host:port of a node's internal port, or null if there is no such node. */
  readonly addressOf: (node: NodeId) => string | null;
  readonly monotonicMs: () => number;
  /** How far the store's clock is ahead of this node's times, ms, while this node's clock is wrong. Otherwise 0. */
  readonly storeAheadMs: () => number;
  readonly ownBatches: () => BatchCounts;
  readonly meter: PeerMeter;
  /** Called for each head of a ledger that another node tells. */
  readonly heard: (ledgerId: string, seq: number) => void;
  readonly budgetMs?: number;
  readonly busyPeerBudgetMs?: number;
}

/** See PeerStream. */
export type HeadsStream = Pick<PeerStream, 'subscribeHeads' | 'isOver'>;

/** The connection to one node at one address. */
interface Line {
  readonly node: NodeId;
  readonly address: string;
  /** null after a failed stream, whose channel may still be connecting to an address where nothing answers. */
  client: Client | null;
  stream: PeerStream | null;
  /** Whether the last stream failed and the node has accepted none since. Until then commands are rejected at once. */
  isDoubted: boolean;
  /**
   * Set during the pause after a failure. At its end a new stream is opened, even if no command waits. If there is no
   * place for one, another pause follows.
   */
  rest: NodeJS.Timeout | null;
}

/** Sends commands to other nodes, over one stream to each. */
export class GrpcPeers implements Peers {
  readonly #parts: GrpcPeersParts;
  readonly #counted: CountedTime;
  /** By node and address, so that a node at a new address gets a new line, and so does another node at an old one. */
  readonly #lines = new Map<string, Line>();
  /** Streams that were not proved when they were last looked at. */
  readonly #unproven = new Set<PeerStream>();

  constructor(parts: GrpcPeersParts) {
    this.#parts = parts;
    this.#counted = new CountedTime(parts.ownBatches, parts.monotonicMs());
  }

  // Synchronous up to the stream, so that commands keep their order.
  ask(node: NodeId, command: Command): Promise<CommandOutcome> {
    const { meter, storeAheadMs } = this.#parts;
    const stream = this.#streamTo(node);
    // The other node compares the deadline with its own clock.
    const deadline = command.deadline + storeAheadMs();
    const asked =
      stream?.ask(commandText({ ...command, deadline })) ??
      Promise.reject(new PeerUnreachable(new Error('the node cannot be reached now'), false));
    return asked.then(
      (outcome) => {
        const fault = outcomeFault(command, outcome);
        meter.forwarded(fault === null ? 'answered' : 'wrong_answer');
        if (fault === null) return outcome;
        // The outcome is unknown: the caller then looks for the command in the ledger's log.
        const error = new Error(`a node answered with another event than it was asked for: ${fault}`);
        stream?.fail(error);
        throw new PeerUnreachable(error);
      },
      (error: unknown) => {
        if (error instanceof NotOwner) meter.forwarded('not_owner');
        else meter.forwarded(error instanceof PeerUnreachable ? 'unreachable' : 'answered');
        throw error;
      },
    );
  }

  /**
   * The stream to a node, by which it can be told of which ledgers this node wants to hear. null: there is none now.
   */
  headsFrom(node: NodeId): HeadsStream | null {
    return this.#streamTo(node);
  }

  #streamTo(node: NodeId): PeerStream | null {
    const address = this.#parts.addressOf(node);
    if (address === null) return null;
    const line = this.#lines.get(lineKey(node, address)) ?? this.#open(node, address);
    if (line.stream === null || line.stream.isOver) {
      if (line.rest !== null) return null;
      const target = nodeTarget(address);
      if (target === null || !this.#mayBegin()) return null;
      line.stream = this.#begin(line, target);
      this.#unproven.add(line.stream);
    }
    if (line.stream.isAccepted) line.isDoubted = false;
    return line.isDoubted ? null : line.stream;
  }

  #mayBegin(): boolean {
    if (this.#unproven.size < unprovenStreamsMax) return true;
    for (const stream of this.#unproven) if (stream.isAccepted || stream.isOver) this.#unproven.delete(stream);
    return this.#unproven.size < unprovenStreamsMax;
  }

  #open(node: NodeId, address: string): Line {
    const line: Line = { node, address, client: null, stream: null, isDoubted: false, rest: null };
    this.#lines.set(lineKey(node, address), line);
    return line;
  }

  #connect(target: string): Client {
    return new Client(target, channelCredentials(this.#parts.security), {
      'grpc.max_receive_message_length': answersFrameMaxBytes,
      'grpc.max_send_message_length': commandsFrameMaxBytes,
      'grpc.keepalive_time_ms': keepaliveMs,
      'grpc.keepalive_timeout_ms': keepaliveMs,
      'grpc.initial_reconnect_backoff_ms': restMs,
      'grpc.max_reconnect_backoff_ms': restMs * 2,
      'grpc.enable_retries': 0,
      // Certificates are checked against the authority only. TLS allows no IP address as a server name.
      'grpc.ssl_target_name_override': 'node.cluster.internal',
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_channelz': 0,
      // Nodes connect to each other directly, even if the environment names a proxy.
      'grpc.enable_http_proxy': 0,
    });
  }

  #begin(line: Line, target: string): PeerStream {
    const { self, monotonicMs, security, memory } = this.#parts;
    const wire = clientWire(security, self, line.node);
    const { path, requestSerialize, responseDeserialize } = exchangeMethod;
    line.client ??= this.#connect(target);
    const call = line.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, wire.greeting);
    return new PeerStream({
      call,
      wire,
      memory,
      bounds: this.#parts.bounds ?? defaultPeerBounds,
      monotonicMs,
      counted: this.#counted,
      budgetMs: this.#parts.budgetMs ?? budgetMs,
      busyPeerBudgetMs: this.#parts.busyPeerBudgetMs ?? busyPeerBudgetMs,
      heard: this.#parts.heard,
      ended: (failed) => {
        if (failed) this.#leaveAlone(line);
      },
    });
  }

  #leaveAlone(line: Line): void {
    line.client?.close();
    line.client = null;
    line.isDoubted = true;
    if (this.#lines.get(lineKey(line.node, line.address)) === line) this.#rest(line);
  }

  #rest(line: Line): void {
    line.rest = setTimeout(() => {
      line.rest = null;
      const { node, address } = line;
      if (this.#parts.addressOf(node) === address && !this.#mayBegin()) this.#rest(line);
      else this.#streamTo(node);
    }, restMs).unref();
  }

  /** Closes lines to nodes that are gone or have another address, unless a command waits on them. */
  forgetGone(): void {
    for (const line of this.#lines.values()) {
      const isWaitedFor = line.stream !== null && line.stream.waiting > 0;
      if (this.#parts.addressOf(line.node) !== line.address && !isWaitedFor)
        this.#close(line, new Error('the node is gone'));
    }
  }

  #close(line: Line, why: Error): void {
    this.#lines.delete(lineKey(line.node, line.address));
    if (line.rest !== null) clearTimeout(line.rest);
    line.stream?.fail(why);
    line.client?.close();
  }

  /** Ends all streams. Sent commands are rejected with an unknown outcome (`mayHaveArrived`). */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const line of this.#lines.values()) this.#close(line, new Error('this node is stopping'));
  }
}

function lineKey(node: NodeId, address: string): string {
  return `${node} ${address}`;
}
