import { expect } from 'vitest';
import { decodeBase64, encodeBase64 } from '../../src/domain/keys/base64.ts';
import { type Checkpoint, verifyCheckpoint } from '../../src/domain/log/checkpoint.ts';
import type { LogKey } from '../../src/domain/log/log-key.ts';
import { parseProofFile } from '../../src/domain/log/proof-file.ts';
import { leafHash } from '../../src/domain/log/tree.ts';
import { isConsistent, isIncluded } from '../../src/domain/log/tree-proof.ts';
import { sleep } from '../../src/runtime/clock/clock.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { knownKey } from './log-keys.ts';
import type { Master, Order, Party } from './parties.ts';
import { done, type Fields, type RestAnswer, rest } from './parties-rest.ts';

/** A log, and a reader of all of it. */
export interface ReadLog {
  readonly origin: string;
  /** Of its methods, without the end: `/v1/ledgers/…/`. */
  readonly path: string;
  readonly kind: 'ledger' | 'master';
  readonly by: Pick<Party, 'bearer'>;
}

interface KeptCounts {
  readonly logs: number;
  readonly notes: number;
  readonly sizes: number;
  /** Proofs of inclusion and of consistency. */
  readonly proofs: number;
}

/** A proof of inclusion, without its leaf. */
type Inclusion = Omit<Parameters<typeof isIncluded>[0], 'leafHash'>;

interface RepeatedAsks {
  readonly logs: readonly ReadLog[];
  /** How many calls are under way at once. */
  readonly callers: number;
  isWanted(): boolean;
  /** Where a caller sends its next call. */
  baseOf(caller: number): string;
  untilBack(): Promise<void>;
}

const proofsAtOnce = 8;
const retriesMaxMs = 60_000;
const retryRestMs = 100;

/**
 * Keeps every note that a service gives out, and shows at the end that none contradicts another. Verifies each proof
 * that comes with notes: of inclusion at the end, against the events.
 */
export class KeptNotes {
  readonly #serviceName: string;
  readonly #keys: readonly LogKey[];
  readonly #heads = new Map<ReadLog, Map<number, Checkpoint>>();
  /** How often calls were answered so: `200`, `503 unavailable tree_building`, `no answer`. */
  readonly answers = new Map<string, number>();
  readonly #inclusions = new Map<ReadLog, Inclusion[]>();
  #notes = 0;
  #proofs = 0;

  constructor(serviceName: string, keys: readonly LogKey[]) {
    this.#serviceName = serviceName;
    this.#keys = keys;
  }

  /** Of the service at an address. */
  static async at(base: string): Promise<KeptNotes> {
    const anchor = await done(base, 'GET', '/.well-known/svc-authority');
    const keys = anchor.rows('log.keys').map(({ public_key }) => knownKey(String(public_key)));
    return new KeptNotes(anchor.text('log.origin'), keys);
  }

  get counts(): KeptCounts {
    const sizes = [...this.#heads.values()].reduce((sum, heads) => sum + heads.size, 0);
    return { logs: this.#heads.size, notes: this.#notes, sizes, proofs: this.#proofs };
  }

  /** The largest size of a log of which a note was kept. 0: none was. */
  largestOf(log: ReadLog): number {
    return Math.max(0, ...(this.#heads.get(log)?.keys() ?? []));
  }

  logsOf({ buyer, ledgerId }: Order, masters: readonly Master[]): ReadLog[] {
    const named = [
      { kind: 'ledger' as const, place: `ledgers/${ledgerId}`, path: `/v1/ledgers/${ledgerId}/` },
      ...masters.map(({ uuid }) => ({
        kind: 'master' as const,
        place: `masters/${uuid}`,
        path: `/v1/traceledger/master/${uuid}/`,
      })),
    ];
    return named.map(({ kind, place, path }) => ({ kind, path, by: buyer, origin: `${this.#serviceName}/${place}` }));
  }

  /** Asks for the newest checkpoint, or for other answers with notes: `turn` says which. null: no answer came. */
  async ask(base: string, log: ReadLog, turn = 0): Promise<RestAnswer | null> {
    const largest = Math.max(1, this.largestOf(log));
    const older = 1 + ((turn * 7_919) % largest);
    const index = log.kind === 'ledger' ? 'seq' : 'master_seq';
    const others = [
      `checkpoint?size=${older}`,
      `proof/inclusion?${index}=${older - 1}`,
      `proof/consistency?from=${older}`,
    ];
    const path = turn % 2 === 0 ? 'checkpoint' : others[((turn - 1) / 2) % others.length];
    return this.get(base, log, path ?? 'checkpoint');
  }

  /** Asks for answers of the logs in turn until `isWanted` is false. `untilBack`: called after each call without answer. */
  async askRepeatedly(options: RepeatedAsks): Promise<void> {
    const { logs, callers, isWanted, baseOf, untilBack } = options;
    await Promise.all(
      Array.from({ length: callers }, async (_, caller) => {
        for (let turn = caller; isWanted(); turn += 1) {
          const log = logs[turn % logs.length];
          if (log === undefined) throw new Error('no log');
          if ((await this.ask(baseOf(caller), log, Math.floor(turn / logs.length))) === null) await untilBack();
        }
      }),
    );
  }

  /** Verifies an answer, and keeps its notes. null: no answer came, as from a node that was killed. */
  async get(base: string, log: ReadLog, path: string): Promise<RestAnswer | null> {
    const answer = await rest(base, 'GET', log.path + path, log.by).catch((error: unknown) => {
      if (error instanceof TypeError) return null;
      throw error;
    });
    const name = nameOf(answer);
    this.answers.set(name, (this.answers.get(name) ?? 0) + 1);
    if (answer?.status === 200) this.#verify(log, path, answer.body);
    return answer;
  }

  /**
   * Of all notes of a log, those next to each other by size are consistent, by proofs of the service at `base`. Its
   * events are those that were proved to be included.
   */
  async expectConsistent(base: string): Promise<KeptCounts> {
    const counts = this.counts;
    const steps: (() => Promise<unknown>)[] = [];
    for (const [log, heads] of this.#heads) {
      const inOrder = [...heads.values()].toSorted((a, b) => a.size - b.size);
      for (const [at, newer] of inOrder.entries()) {
        const older = inOrder[at - 1];
        if (older !== undefined) {
          const path = `proof/consistency?from=${older.size}&to=${newer.size}`;
          steps.push(() => this.#untilAnswered(base, log, path));
        }
      }
    }
    const left = steps.values();
    await Promise.all(
      Array.from({ length: proofsAtOnce }, async () => {
        for (const step of left) await step();
      }),
    );
    for (const [log, inclusions] of this.#inclusions) await this.#expectIncluded(base, log, inclusions);
    return counts;
  }

  async #expectIncluded(base: string, log: ReadLog, inclusions: readonly Inclusion[]): Promise<void> {
    const last = Math.max(...inclusions.map(({ index }) => index));
    const leafHashes: Uint8Array[] = [];
    for (let path = 'events?limit=1000'; leafHashes.length <= last; ) {
      const page = await this.#untilAnswered(base, log, path);
      for (const { hash, content_hash } of page.rows('events'))
        leafHashes.push(leafHash(Buffer.from(String(log.kind === 'ledger' ? hash : content_hash), 'hex')));
      if (leafHashes.length <= last) path = `events?limit=1000&cursor=${page.text('next_cursor')}`;
    }
    const wrong = inclusions.filter(({ index, ...proof }) => {
      const hash = leafHashes[index];
      return hash === undefined || !isIncluded({ ...proof, index, leafHash: hash });
    });
    expect([log.origin, wrong]).toEqual([log.origin, []]);
  }

  async #untilAnswered(base: string, log: ReadLog, path: string): Promise<RestAnswer> {
    const began = performance.now();
    let answer = await this.get(base, log, path);
    while (isRetryable(answer) && performance.now() - began < retriesMaxMs) {
      await sleep(systemClock, retryRestMs);
      answer = await this.get(base, log, path);
    }
    if (answer?.status !== 200) throw new Error(`${base}${log.path}${path}: ${answer?.status} ${answer?.raw}`);
    return answer;
  }

  /** The answer is the one that was asked for, its notes are right, and so is what it says of them. */
  #verify(log: ReadLog, path: string, body: Fields): void {
    const [method, query] = path.split('?');
    if (method === 'events') return;
    const asked = [...new URLSearchParams(query)].map(([name, value]) => [
      name.endsWith('seq') ? 'index' : name,
      Number(value),
    ]);
    const expectBody = (members: Fields) => expect(body, `${log.origin} ${path}`).toMatchObject(members);
    expectBody({ origin: log.origin, ...Object.fromEntries(asked) });
    if (method === 'checkpoint') {
      const { size, root } = this.#keep(log, body.checkpoint);
      expectBody({ size, root_hash: encodeBase64(root) });
    } else if (method === 'proof/inclusion') {
      const { index, hashes, checkpoint } = parseProofFile(String(body.proof)) ?? expect.fail(String(body.proof));
      const { size, root } = this.#keep(log, checkpoint);
      expectBody({ index, size });
      const inclusions = this.#inclusions.get(log) ?? [];
      this.#inclusions.set(log, inclusions);
      inclusions.push({ index, size, root, hashes });
      this.#proofs += 1;
    } else {
      const [older, newer] = [this.#keep(log, body.checkpoint_from), this.#keep(log, body.checkpoint_to)];
      expectBody({ from: older.size, to: newer.size });
      const hashes = (body.hashes as string[]).map((hash) => decodeBase64(hash, 32) ?? Buffer.alloc(0));
      const claim = { oldSize: older.size, oldRoot: older.root, newSize: newer.size, newRoot: newer.root, hashes };
      expect([log.origin, path, isConsistent(claim)]).toEqual([log.origin, path, true]);
      this.#proofs += 1;
    }
  }

  #keep(log: ReadLog, note: unknown): Checkpoint {
    const checkpoint = verifyCheckpoint(String(note), log.origin, this.#keys);
    const heads = this.#heads.get(log) ?? new Map<number, Checkpoint>();
    this.#heads.set(log, heads);
    const { size, root } = heads.get(checkpoint.size) ?? checkpoint;
    expect([log.origin, size, hexOf(checkpoint.root)]).toEqual([log.origin, size, hexOf(root)]);
    heads.set(size, checkpoint);
    this.#notes += 1;
    return checkpoint;
  }
}

function reasonOf({ body }: RestAnswer): unknown {
  return ((body.error as Fields | undefined)?.details as Fields | undefined)?.reason;
}

function nameOf(answer: RestAnswer | null): string {
  if (answer === null) return 'no answer';
  return [answer.status, answer.code, reasonOf(answer)]
    .filter((part) => typeof part !== 'undefined' && part !== null)
    .join(' ');
}

function isRetryable(answer: RestAnswer | null): boolean {
  return answer !== null && answer.status === 503 && reasonOf(answer) !== 'log_behind';
}

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
