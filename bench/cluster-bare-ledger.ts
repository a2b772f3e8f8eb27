import { randomBytes, randomUUID } from 'node:crypto';
import { names, type Projection } from '../src/domain/event/projection.ts';
import { parseRow } from '../src/domain/event/row.ts';
import { batchOf, type KnownLedger, knownAfter, unknownProjections } from '../src/store/cassandra/log/batch-write.ts';
import { batchStatements, bucketEvents, claimStatement } from '../src/store/cassandra/log/bucket.ts';
import { bucketHint, projectionWrites } from '../src/store/cassandra/log/projecting.ts';
import { textOf } from '../src/store/cassandra/session/session.ts';
import type { Head, LedgerEntry } from '../src/store/ledger-store.ts';
import type { BareDriver } from './cluster-bare-driver.ts';
import { benchEventType } from './payload.ts';

/** Rows of the service to send again: enough that equal ones are far apart for Cassandra's compression. */
const sampleRows = 512;
const SAMPLE = "SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = 0 AND scope = '' LIMIT ?";

/** Rows as the service wrote them. */
export async function readSample(driver: BareDriver, ledgerId: string): Promise<string[]> {
  const rows = await driver.read({ cql: SAMPLE, params: [ledgerId, sampleRows] });
  const events = rows
    .map((row) => textOf(row, 'row') ?? '')
    .filter((row) => parseRow(row).eventType === benchEventType);
  if (events.length === 0) throw new Error('the run left no rows to take as an example');
  return events;
}

/** A ledger that the bare loop made up, written by the statements of the store. */
export class BareLedger {
  readonly #driver: BareDriver;
  readonly #rows: readonly string[];
  readonly #ledgerId = randomUUID();
  readonly #masters: readonly string[];
  readonly #fence = randomBytes(16).toString('hex');
  #head: Head | null = null;
  #known: KnownLedger | null = null;

  constructor(driver: BareDriver, rows: readonly string[], masters: number) {
    this.#driver = driver;
    this.#rows = rows;
    this.#masters = Array.from({ length: masters }, () => names.masterEvents(randomUUID()));
  }

  claim(): Promise<void> {
    return this.#driver.decide([claimStatement(this.#ledgerId, 0, { fence: null, headSeq: null }, this.#fence)]);
  }

  /** Writes a batch and, if wanted, its projections: a write for each partition, concurrently. */
  async append(events: number, withProjections: boolean): Promise<void> {
    const head = this.#head;
    const claim = { ledgerId: this.#ledgerId, fence: this.#fence, head };
    const batch = batchOf(this.#entriesAfter(head, events), bucketEvents);
    const { bucket, projections, last } = batch;
    const isFirst = head === null || bucket !== this.#known?.bucket;
    const before = { fence: isFirst && bucket > 0 ? null : this.#fence, head: isFirst ? null : head };
    await this.#driver.decide(batchStatements(claim, batch, before));
    if (withProjections) {
      const writes = projectionWrites(this.#ledgerId, unknownProjections(projections, this.#known), Date.now());
      if (isFirst && bucket > 0) writes.push([bucketHint(this.#ledgerId, bucket)]);
      await Promise.all(writes.map((statements) => this.#driver.write(statements)));
    }
    this.#head = last;
    this.#known = knownAfter(this.#fence, last, projections, this.#known);
  }

  #entriesAfter(head: Head | null, count: number): LedgerEntry[] {
    const entries: LedgerEntry[] = [];
    let [seq, prevHash] = head === null ? [-1, ''] : [head.seq, head.hash];
    for (let made = 0; made < count; made++) {
      seq += 1;
      const hash = randomHex();
      const row = this.#rows[seq % this.#rows.length] ?? '';
      entries.push({ seq, prevHash, hash, row, projections: this.#projections(seq) });
      prevHash = hash;
    }
    return entries;
  }

  /** What an append of a keyed call is projected to: the list of its master, and the command key of its command. */
  #projections(seq: number): Projection[] {
    const command = { id: randomHex(), fingerprint: randomHex(), permanent: false };
    return [
      { kind: 'scope', scope: this.#masters[seq % this.#masters.length] ?? '' },
      { kind: 'command', command },
    ];
  }
}

function randomHex(): string {
  return randomBytes(32).toString('hex');
}
