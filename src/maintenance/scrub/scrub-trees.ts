import { LedgerError } from '../../domain/errors.ts';
import { parseOrigin } from '../../domain/log/origin.ts';
import { TILE_HASHES } from '../../domain/log/tiles.ts';
import { isSameHash } from '../../domain/log/tree.ts';
import { isBrokenRow } from '../../service/proofs/log-rows.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { StoredHashes, StoredSignedHead, TreeInspection } from '../../store/store-inspection.ts';
import { UnreadableRecord } from '../../store/unreadable-record.ts';
import { forEachConcurrently } from '../for-each-concurrently.ts';
import { type ExpectedLog, ExpectedTrees } from './expected-trees.ts';
import type { Finding } from './finding.ts';
import { whyBehind } from './signed-head-check.ts';

/** Values that are compared at a time. Some wait for rows while others are hashed. */
const valuesAtOnceMax = 8;
/** Broken rows that are remembered, so that each is found once. */
const brokenRowsMax = 10_000;

interface TreeScrubParts {
  readonly ledgers: LedgerStore;
  readonly trees: TreeInspection;
  /** The name under which the store signs. Heads of other names bind nobody any more. null: it signs nothing. */
  readonly serviceName: string | null;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Whether wrong hashes are removed. Then they are counted, and no finding. */
  readonly repair: boolean;
  readonly found: (finding: Finding) => void;
  /** Called with the share of the stored hashes that was compared. */
  readonly progress?: (share: number) => void;
}

export interface TreeScrub {
  /** Stored values that were compared, each with up to 256 hashes. */
  readonly hashValues: number;
  readonly signedHeads: number;
  /** Values with wrong hashes that were removed. */
  readonly removed: number;
}

/**
 * Compares every stored hash and every signed head of all logs with the events. Nodes may write meanwhile. The memory
 * is bounded (ExpectedTrees). Throws LedgerError `unavailable` if the store does not answer.
 */
export async function scrubTrees(parts: TreeScrubParts): Promise<TreeScrub> {
  const { trees, repair, progress = () => {} } = parts;
  const scrub = new Comparison(parts);
  const total = { hashValues: 0, signedHeads: 0, removed: 0 };
  await forEachConcurrently(trees.hashes(), valuesAtOnceMax, async ({ found: value, share }) => {
    total.hashValues += 1;
    const wrong = await scrub.wrongHash(value);
    if (wrong !== null && repair) {
      await value.remove();
      total.removed += 1;
    } else if (wrong !== null) parts.found(wrong);
    else scrub.compareTime(value, value);
    progress(share);
  });
  await forEachConcurrently(trees.signedHeads(), valuesAtOnceMax, async (head) => {
    total.signedHeads += 1;
    await scrub.compareHead(head);
  });
  return total;
}

class Comparison {
  readonly #parts: TreeScrubParts;
  readonly #expected: ExpectedTrees;
  readonly #brokenRows = new Set<string>();

  constructor(parts: TreeScrubParts) {
    this.#parts = parts;
    this.#expected = new ExpectedTrees(parts.ledgers, parts.now);
  }

  /** The finding about a value that readers must not use. null: it is right, or broken rows hide what is right. */
  async wrongHash(value: StoredHashes): Promise<Finding | null> {
    const { owner, level, position, hashes, table, key } = value;
    const finding = (ledgerId: string | null, at: number, what: string): Finding => {
      const detail = `${owner ?? 'a log that is not named'}, level ${level}, position ${at}: ${what}`;
      return { ledgerId, seq: null, type: 'wrong_tile', detail, table, key };
    };
    if (owner === null || hashes === null) return finding(null, position, 'the value does not fit its place');
    return this.#unlessBroken(owner, async (log) => {
      if (log === null) return finding(null, position, 'there is no such log');
      for (const [index, hash] of hashes.entries()) {
        const at = position + index;
        if (hash === null) continue;
        const size = (at + 1) * TILE_HASHES ** level;
        if (!Number.isSafeInteger(size) || !(await this.#expected.reaches(log, size)))
          return finding(log.ledgerId, at, 'the log has no such events');
        if (!isSameHash(hash, await this.#expected.hash(log, level, at)))
          return finding(log.ledgerId, at, 'the hash is not that of the events');
      }
      return null;
    });
  }

  compareTime(
    { misdated = null }: Pick<StoredHashes, 'misdated'>,
    { table, key }: Pick<StoredHashes, 'table' | 'key'>,
  ): void {
    if (misdated !== null)
      this.#parts.found({ ledgerId: null, seq: null, type: 'wrong_writetime', detail: misdated, table, key });
  }

  async compareHead({ origin, head, misdated = null }: StoredSignedHead): Promise<void> {
    const { serviceName, found } = this.#parts;
    const place = { table: 'signed_head', key: `origin=${origin ?? ''}` };
    if (origin === null || head === null) {
      const detail = `the signed head of ${origin ?? 'a log that is not named'} cannot be read`;
      return found({ ledgerId: null, seq: null, type: 'damaged_row', detail, ...place });
    }
    this.compareTime({ misdated }, place);
    if (parseOrigin(origin)?.serviceName !== serviceName) return;
    const detail = await this.#unlessBroken(origin, () => whyBehind(this.#expected, origin, head));
    if (detail !== null) found({ ledgerId: null, seq: null, type: 'log_behind', detail, ...place });
  }

  /** Runs `compare`. Where it meets damage that hides what is right, that is found, and the result is null. */
  async #unlessBroken<T>(origin: string, compare: (log: ExpectedLog | null) => Promise<T | null>): Promise<T | null> {
    let log: ExpectedLog | null = null;
    try {
      log = await this.#expected.logOf(origin);
      return await compare(log);
    } catch (error) {
      const damage = damageIn(error, origin);
      if (damage === null) throw error;
      const finding = { ledgerId: log?.ledgerId ?? null, ...damage };
      const key = JSON.stringify(finding);
      if (this.#brokenRows.has(key)) return null;
      if (this.#brokenRows.size < brokenRowsMax) this.#brokenRows.add(key);
      this.#parts.found(finding);
      return null;
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What is damaged: an exception says that a value cannot be compared. null: the store does not answer. */
function damageIn(error: unknown, origin: string): Omit<Finding, 'ledgerId'> | null {
  if (isBrokenRow(error)) {
    const seq = typeof error.details.seq === 'number' ? error.details.seq : null;
    return { seq, type: 'broken_row', detail: 'the event is missing, or it is not the one that was written' };
  }
  if (error instanceof LedgerError && !(error instanceof UnreadableRecord)) return null;
  const why =
    error instanceof UnreadableRecord && error.cause instanceof Error ? error.cause.message : messageOf(error);
  return { seq: null, type: 'unchecked_ledger', detail: `${origin} could not be compared with its events: ${why}` };
}
