import { afterMs } from '../../../cluster/local/ports.ts';
import { createClient } from '../../../src/client/index.ts';
import type { SeededRandom } from '../../simulation/random.ts';
import type { Followed, Receipt } from '../../support/history/history.ts';
import { type Cut, type CutMode, openCut } from '../rig/cut.ts';
import { fixedPorts } from '../rig/fixed-ports.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import type { LoadHistory } from './load-history.ts';
import type { LoadWorld } from './load-world.ts';
import { StreamReader } from './stream-reader.ts';

const pollMs = 100;

interface FollowersOptions {
  readonly nodes: readonly NodeUnderTest[];
  readonly world: LoadWorld;
  readonly history: LoadHistory;
  readonly random: SeededRandom;
  readonly count: number;
  /** So many of them use the client, which verifies each event. The others note what they are sent. */
  readonly verifying: number;
}

interface Follower extends Followed {
  readonly receipts: Receipt[];
}

/**
 * Followers of the ledgers of a load from their first events on, which note what they are sent. They are spread over
 * the nodes. The first and the last one are behind cuts.
 */
export class LoadFollowers implements AsyncDisposable {
  readonly #options: FollowersOptions;
  readonly #followers: Follower[] = [];
  readonly #cuts: Cut[] = [];
  readonly #ending: (() => Promise<void>)[] = [];
  /** One text of each hash: a part of a text would hold the whole. */
  readonly #hashes = new Map<string, string>();
  #reconnects = 0;

  private constructor(options: FollowersOptions) {
    this.#options = options;
  }

  static async start(options: FollowersOptions): Promise<LoadFollowers> {
    const all = new LoadFollowers(options);
    for (let at = 0; at < options.count; at += 1) await all.#add(at);
    return all;
  }

  get receipts(): number {
    return this.#followers.reduce((sum, { receipts }) => sum + receipts.length, 0);
  }

  /** How often a follower had to connect again. */
  get reconnects(): number {
    return this.#reconnects;
  }

  async #add(at: number): Promise<void> {
    const { nodes, world, history, count, verifying } = this.#options;
    const node = nodes[at % nodes.length];
    const ledger = world.ledgers[at % world.ledgers.length];
    if (node === undefined || ledger === undefined) throw new Error('no node, or no ledger');
    const name = `follower ${at} of ${node.id}`;
    const follower: Follower = { name, ledgerId: ledger.id, after: -1, receipts: [] };
    this.#followers.push(follower);
    history.followed.push(follower);
    const baseUrl = at === 0 || at === count - 1 ? await this.#behindCut(node) : node.baseUrl;
    if (at < verifying) this.#verify(follower, baseUrl, node, at % 2 === 0 ? 'rest' : 'grpc');
    else this.#note(follower, baseUrl);
  }

  async #behindCut({ baseUrl }: NodeUnderTest): Promise<string> {
    const [port = 0] = await fixedPorts(1);
    this.#cuts.push(await openCut({ host: '127.0.0.1', port: Number(new URL(baseUrl).port) }, port));
    return `http://127.0.0.1:${port}`;
  }

  #verify(follower: Follower, baseUrl: string, { grpcUrl }: NodeUnderTest, transport: 'rest' | 'grpc'): void {
    const { world, history } = this.#options;
    const client = createClient({ baseUrl, grpcUrl, transport, apiKey: world.buyer.apiKey });
    const leave = new AbortController();
    const follow = async (): Promise<void> => {
      const { ledgerId, after } = follower;
      const onRetry = (): void => {
        this.#reconnects += 1;
      };
      for await (const { seq, hash, checks } of client.follow({ ledgerId, after }, { signal: leave.signal, onRetry })) {
        this.#received(follower, seq, hash);
        if (!checks.contentHash || !checks.chainHash || !(checks.actorSignature || checks.authoritySeal))
          history.broken.push(`${follower.name} could not check seq ${seq}`);
      }
    };
    const ended = follow().catch((error: unknown) => {
      if (!leave.signal.aborted) history.broken.push(`${follower.name} ended: ${String(error)}`);
    });
    this.#ending.push(async () => {
      leave.abort();
      await ended;
      await client.close();
    });
  }

  #note(follower: Follower, baseUrl: string): void {
    const { world, history, random } = this.#options;
    const reader = new StreamReader({
      url: new URL(`/v1/ledgers/${follower.ledgerId}/events/follow?after_seq=${follower.after}`, baseUrl),
      apiKey: world.supplier.apiKey,
      random,
      event: (seq, hash) => this.#received(follower, seq, hash),
      again: () => {
        this.#reconnects += 1;
      },
      broken: (what) => history.broken.push(`${follower.name}: ${what}`),
    });
    const ended = reader.run();
    this.#ending.push(() => {
      reader.stop();
      return ended;
    });
  }

  #received({ receipts }: Follower, seq: number, hash: string): void {
    let known = this.#hashes.get(hash);
    if (known === undefined) {
      known = Buffer.from(hash).toString();
      this.#hashes.set(known, known);
    }
    receipts.push({ seq, hash: known, at: this.#options.history.tick() });
  }

  /** Cuts the network of the followers behind cuts for a time. */
  async cut(mode: Exclude<CutMode, 'open'>, forMs: number): Promise<void> {
    for (const cut of this.#cuts) cut.set(mode);
    await afterMs(forMs);
    for (const cut of this.#cuts) cut.set('open');
  }

  /** Waits until each follower has the newest acknowledged event of its ledger. Those that are late are found later. */
  async untilAllAcknowledged(maxMs: number): Promise<void> {
    const heads = new Map<string, number>();
    for (const { command, result } of this.#options.history.calls) {
      if (result.kind !== 'written') continue;
      heads.set(command.ledgerId, Math.max(result.outcome.event.seq, heads.get(command.ledgerId) ?? -1));
    }
    const isLate = ({ ledgerId, receipts }: Follower) => (receipts.at(-1)?.seq ?? -1) < (heads.get(ledgerId) ?? -1);
    const began = performance.now();
    while (this.#followers.some(isLate) && performance.now() - began < maxMs) await afterMs(pollMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ending.splice(0).map((end) => end()));
    await Promise.all(this.#cuts.splice(0).map((cut) => cut[Symbol.asyncDispose]()));
  }
}
