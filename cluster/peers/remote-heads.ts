import type { NodeId, Placement } from '../../src/actors/routing/placement.ts';
import { shardOf } from '../../src/actors/routing/shard.ts';
import type { Clock } from '../../src/runtime/clock/clock.ts';
import type { RemoteHeads } from '../../src/service/following/ledger-heads.ts';
import type { HeadsStream } from './grpc-peers.ts';
import type { HeadSubscribers } from './head-subscribers.ts';

/** How often the owners are asked for ledgers of which they do not know that this node follows them. */
const askEveryMs = 1_000;
/** How often the owner of every ledger is looked up again. */
const roundsBetweenOwners = 10;
const lookUpsAtOnce = 64;

interface RemoteHeadsParts {
  readonly self: NodeId;
  readonly shardCount: number;
  readonly placement: Pick<Placement, 'locate'>;
  readonly subscribers: HeadSubscribers;
  readonly clock: Clock;
  /** See GrpcPeers. */
  headsFrom(node: NodeId): HeadsStream | null;
}

interface Wanted {
  owner: NodeId | null;
  /** The stream by which the owner was asked; null if it was not. */
  stream: HeadsStream | null;
}

/**
 * Asks the owners of followed ledgers to tell of their commits, over the streams that carry commands. A ledger that
 * moves, or whose stream ends, is asked for again; meanwhile the node looks into the store by itself.
 */
export class NodeHeads implements RemoteHeads, Disposable {
  readonly #parts: RemoteHeadsParts;
  readonly #wanted = new Map<string, Wanted>();
  #heard: (ledgerId: string, seq: number) => void = () => {};
  #cancelRound: (() => void) | null = null;
  #rounds = 0;

  constructor(parts: RemoteHeadsParts) {
    this.#parts = parts;
  }

  subscribe(ledgerId: string): Disposable {
    const wanted: Wanted = { owner: null, stream: null };
    this.#wanted.set(ledgerId, wanted);
    void this.#ask(ledgerId, wanted);
    this.#askLater();
    return {
      [Symbol.dispose]: () => {
        if (this.#wanted.get(ledgerId) !== wanted) return;
        this.#wanted.delete(ledgerId);
        wanted.stream?.subscribeHeads([], [ledgerId]);
      },
    };
  }

  listen(heard: (ledgerId: string, seq: number) => void): void {
    this.#heard = heard;
  }

  /** Another node has told of a head. */
  heard(ledgerId: string, seq: number): void {
    this.#heard(ledgerId, seq);
  }

  tell(ledgerId: string, seq: number): void {
    this.#parts.subscribers.committed(ledgerId, seq);
  }

  #askLater(): void {
    this.#cancelRound ??= this.#parts.clock.after(askEveryMs, () => {
      void this.#askRound().finally(() => {
        this.#cancelRound = null;
        if (this.#wanted.size > 0) this.#askLater();
      });
    });
  }

  async #askRound(): Promise<void> {
    this.#rounds += 1;
    const isAll = this.#rounds % roundsBetweenOwners === 0;
    const due = [...this.#wanted].filter(([, { stream }]) => isAll || stream === null || stream.isOver);
    for (let at = 0; at < due.length; at += lookUpsAtOnce)
      await Promise.all(due.slice(at, at + lookUpsAtOnce).map(([ledgerId, wanted]) => this.#ask(ledgerId, wanted)));
  }

  /** Does not reject: an owner that cannot be asked is looked for again. */
  async #ask(ledgerId: string, wanted: Wanted): Promise<void> {
    const { self, shardCount, placement, headsFrom } = this.#parts;
    try {
      const owner = await placement.locate(shardOf(ledgerId, shardCount));
      if (this.#wanted.get(ledgerId) !== wanted) return;
      const stream = owner === null || owner === self ? null : headsFrom(owner);
      if (stream !== null && stream === wanted.stream) return;
      if (wanted.owner !== owner) wanted.stream?.subscribeHeads([], [ledgerId]);
      wanted.owner = owner;
      wanted.stream = stream?.subscribeHeads([ledgerId]) === true ? stream : null;
    } catch {
      wanted.owner = null;
      wanted.stream = null;
    }
  }

  [Symbol.dispose](): void {
    this.#cancelRound?.();
    this.#cancelRound = null;
    this.#wanted.clear();
  }
}
