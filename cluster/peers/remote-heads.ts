import type { NodeId, Placement } from '../../src/actors/routing/placement.ts';
import { shardOf } from '../../src/actors/routing/shard.ts';
import type { Clock } from '../../src/runtime/clock/clock.ts';
import type { RemoteHeads } from '../../src/service/following/ledger-heads.ts';
import type { HeadsStream } from './grpc-peers.ts';
import type { HeadWatchers } from './head-watchers.ts';

/** How often ledgers whose owner does not know of this node are looked at. */
const lookEveryMs = 1_000;
/** How often the owner of every ledger is looked up again. */
const looksBetweenOwners = 10;
const lookUpsAtOnce = 64;

interface RemoteHeadsParts {
  readonly self: NodeId;
  readonly shardCount: number;
  readonly placement: Pick<Placement, 'locate'>;
  readonly watchers: HeadWatchers;
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
  #cancelLook: (() => void) | null = null;
  #looks = 0;

  constructor(parts: RemoteHeadsParts) {
    this.#parts = parts;
  }

  subscribe(ledgerId: string): Disposable {
    const wanted: Wanted = { owner: null, stream: null };
    this.#wanted.set(ledgerId, wanted);
    void this.#ask(ledgerId, wanted);
    this.#lookLater();
    return {
      [Symbol.dispose]: () => {
        if (this.#wanted.get(ledgerId) !== wanted) return;
        this.#wanted.delete(ledgerId);
        wanted.stream?.watchHeads([], [ledgerId]);
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
    this.#parts.watchers.committed(ledgerId, seq);
  }

  #lookLater(): void {
    this.#cancelLook ??= this.#parts.clock.after(lookEveryMs, () => {
      void this.#look().finally(() => {
        this.#cancelLook = null;
        if (this.#wanted.size > 0) this.#lookLater();
      });
    });
  }

  async #look(): Promise<void> {
    this.#looks += 1;
    const isAll = this.#looks % looksBetweenOwners === 0;
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
      if (wanted.owner !== owner) wanted.stream?.watchHeads([], [ledgerId]);
      wanted.owner = owner;
      wanted.stream = stream?.watchHeads([ledgerId]) === true ? stream : null;
    } catch {
      wanted.owner = null;
      wanted.stream = null;
    }
  }

  [Symbol.dispose](): void {
    this.#cancelLook?.();
    this.#cancelLook = null;
    this.#wanted.clear();
  }
}
