import { Client, Metadata } from '@grpc/grpc-js';
import { commandTimeoutMs } from '../../src/actors/bounds.ts';
import type { Outcome } from '../../src/actors/outcome.ts';
import { NotOwner, type Peers, PeerUnreachable } from '../../src/actors/peers.ts';
import type { NodeId } from '../../src/actors/placement.ts';
import type { TurnCounts } from '../../src/actors/turn-counts.ts';
import type { Command } from '../../src/domain/command.ts';
import { CountedTime } from './counted-time.ts';
import { exchangeMethod, messageReceiveMaxBytes, secretKey } from './exchange-method.ts';
import { type PeerQueue, PeerStream } from './peer-stream.ts';
import { channelCredentials, type PeerSecurity } from './security.ts';
import { commandText } from './wire-command.ts';

/** How long a node may carry nothing out, in time that counts (CountedTime), before a command that waits for it is carried out here. Far more than a write takes. */
export const budgetMs = 2_500;
/**
 * How long a command waits for a node that carries out others meanwhile, or while the store confirms nothing to this node either: longer than any caller, so that the ledgers of a node that has too
 * much to do are not taken over, which would only add to it. It refuses by itself what it comes to too late.
 */
export const patienceMs = commandTimeoutMs + 2_000;
/** After a failure a node is left alone so long, and then until it takes a stream again: who asks meanwhile is told at once. */
const restMs = 500;
/** A connection on which nothing comes back is dropped within two times this, and what waits on it told: a peer that does not run at all is noticed by that in any case. */
const keepaliveMs = 2_000;

/** What forwarding tells the metrics. */
export interface PeerMeter {
  forwarded(result: 'answered' | 'not_owner' | 'unreachable'): void;
}

export interface GrpcPeersParts {
  readonly security: PeerSecurity;
  /** host:port of a node's internal port; null if there is no such node. */
  readonly addressOf: (node: NodeId) => string | null;
  readonly monotonicMs: () => number;
  readonly ownTurns: () => TurnCounts;
  readonly meter: PeerMeter;
  readonly queue?: PeerQueue;
  readonly budgetMs?: number;
  readonly patienceMs?: number;
}

interface Line {
  readonly node: NodeId;
  readonly address: string;
  /** null: none was made since the last stream failed. Its channel may still be connecting to where nothing answers. */
  client: Client | null;
  stream: PeerStream | null;
  /** Whether the last stream failed, and the node has taken none since: nobody waits for it until it does. */
  isDoubted: boolean;
  /** Set while the node is left alone. Begins a stream again behind that, whether anything is asked or not. */
  rest: NodeJS.Timeout | null;
}

/** The way to other nodes: a stream to each, made when it is first needed. */
export class GrpcPeers implements Peers {
  readonly #parts: GrpcPeersParts;
  readonly #counted: CountedTime;
  /** By address: a node that comes back elsewhere is another one. */
  readonly #lines = new Map<string, Line>();

  constructor(parts: GrpcPeersParts) {
    this.#parts = parts;
    this.#counted = new CountedTime(parts.ownTurns, parts.monotonicMs());
  }

  // Synchronous up to the stream, so that commands keep the order in which they were asked.
  ask(node: NodeId, _shard: number, command: Command): Promise<Outcome> {
    const { meter } = this.#parts;
    const asked = this.#streamTo(node)?.ask(commandText(command));
    const outcome = asked ?? Promise.reject(new PeerUnreachable(new Error('the node cannot be reached now'), false));
    outcome.then(
      () => meter.forwarded('answered'),
      (error) => {
        if (error instanceof NotOwner) meter.forwarded('not_owner');
        else meter.forwarded(error instanceof PeerUnreachable ? 'unreachable' : 'answered');
      },
    );
    return outcome;
  }

  #streamTo(node: NodeId): PeerStream | null {
    const address = this.#parts.addressOf(node);
    if (address === null) return null;
    const line = this.#lines.get(address) ?? this.#open(node, address);
    if (line.stream === null || line.stream.isOver) {
      if (line.rest !== null) return null;
      line.stream = this.#begin(line);
    }
    if (line.stream.isAccepted) line.isDoubted = false;
    return line.isDoubted ? null : line.stream;
  }

  #open(node: NodeId, address: string): Line {
    const line: Line = { node, address, client: null, stream: null, isDoubted: false, rest: null };
    this.#lines.set(address, line);
    return line;
  }

  #connect(address: string): Client {
    return new Client(address, channelCredentials(this.#parts.security), {
      'grpc.max_receive_message_length': messageReceiveMaxBytes,
      'grpc.max_send_message_length': messageReceiveMaxBytes,
      'grpc.keepalive_time_ms': keepaliveMs,
      'grpc.keepalive_timeout_ms': keepaliveMs,
      'grpc.initial_reconnect_backoff_ms': restMs,
      'grpc.max_reconnect_backoff_ms': restMs * 2,
      'grpc.enable_retries': 0,
      // Only the authority counts; an address as a server name is not allowed.
      'grpc.ssl_target_name_override': 'node.cluster.internal',
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_channelz': 0,
    });
  }

  #begin(line: Line): PeerStream {
    const { monotonicMs, security } = this.#parts;
    const metadata = new Metadata();
    if (security.secret !== null) metadata.set(secretKey, security.secret);
    const { path, requestSerialize, responseDeserialize } = exchangeMethod;
    line.client ??= this.#connect(line.address);
    const call = line.client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    return new PeerStream({
      call,
      monotonicMs,
      counted: this.#counted,
      budgetMs: this.#parts.budgetMs ?? budgetMs,
      patienceMs: this.#parts.patienceMs ?? patienceMs,
      ...(this.#parts.queue === undefined ? {} : { queue: this.#parts.queue }),
      ended: (failed) => {
        if (failed) this.#leaveAlone(line);
      },
    });
  }

  #leaveAlone(line: Line): void {
    line.client?.close();
    line.client = null;
    line.isDoubted = true;
    if (this.#lines.get(line.address) !== line) return;
    line.rest = setTimeout(() => {
      line.rest = null;
      this.#streamTo(line.node);
    }, restMs).unref();
  }

  /** Closes lines to nodes that are gone, or are elsewhere by now, once nothing waits on them. */
  forgetGone(): void {
    for (const [address, { node, stream }] of this.#lines) {
      const isWaitedFor = stream !== null && stream.waiting > 0;
      if (this.#parts.addressOf(node) !== address && !isWaitedFor) this.#close(address, new Error('the node is gone'));
    }
  }

  #close(address: string, why: Error): void {
    const line = this.#lines.get(address);
    if (line === undefined) return;
    this.#lines.delete(address);
    if (line.rest !== null) clearTimeout(line.rest);
    line.stream?.fail(why);
    line.client?.close();
  }

  /** Ends all streams; what waits is told that nobody knows. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const address of this.#lines.keys()) this.#close(address, new Error('this node is stopping'));
  }
}
