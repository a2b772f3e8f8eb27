import { parseOrigin } from '../../domain/log/origin.ts';
import { isStamped } from '../../service/log-identity/log-identity.ts';
import { type LogRecord, logRules, readLog, writeLog } from '../../service/log-identity/log-record.ts';
import { isBrokenRow } from '../../service/proofs/log-rows.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { SignedHead, SignedHeads } from '../../store/signed-heads.ts';
import type { TreeInspection } from '../../store/store-inspection.ts';
import type { StoreStamp } from '../../store/store-stamp.ts';
import { forEachConcurrently } from '../for-each-concurrently.ts';
import { ExpectedTrees } from '../scrub/expected-trees.ts';
import { whyBehind } from '../scrub/signed-head-check.ts';
import { CopyRefused } from './copy-ledger.ts';

const headsAtOnceMax = 32;
/** Each may read and hash all events of a log. */
const checksAtOnceMax = 4;
/**
 * Stands in place of the keyspace's id until the copy is complete. So nodes of the target take it for a restored copy,
 * and sign nothing: without all signed heads they could contradict what the source has signed.
 */
const unfinishedCopy = 'copy not finished';

interface LogOfStore {
  readonly records: RecordStore;
  readonly stamp: StoreStamp;
}

interface LogSource extends LogOfStore {
  readonly ledgers: LedgerStore;
  readonly trees: TreeInspection;
}

/** Whether a record says under which name and key the logs are signed. It holds for one store alone. */
export function isOfLog({ kind }: { readonly kind: string }): boolean {
  return kind === logRules.kind;
}

/**
 * Gives the target the name and the keys of the source's logs, if its nodes are to go on under this name. Then the
 * source must not sign again, and `completeLog` ends the copy. Returns the name, or null if they have another one.
 *
 * Throws CopyRefused, before anything is written, if the source is a restored copy, since nobody knows what was signed
 * for it, and if one of its logs is behind.
 */
export async function copyLog(
  source: LogSource,
  target: LogOfStore,
  { logOrigin, now }: { readonly logOrigin: string | null; readonly now: () => number },
): Promise<string | null> {
  const { log } = await readLog(source.records);
  if (log === null ? source.stamp.isCopy() : isStamped(log, source.stamp))
    throw new CopyRefused(
      'The data was restored from a copy: run `ledger-trust log new-origin NAME` first, or `ledger-trust log keep` if nothing was signed since.',
    );
  if (log === null) return null;
  await refuseBehind(source, log, now);
  const { log: present, version } = await readLog(target.records);
  if (present !== null) return present.origin === log.origin ? log.origin : null;
  if (logOrigin !== null && logOrigin !== log.origin) return null;
  await writeLog(target.records, { ...log, keyspaceId: unfinishedCopy }, version);
  return log.origin;
}

/**
 * Gives the target the signed heads of the source under this name, after its ledgers: those of ledgers first. Then its
 * nodes may sign. A log that was not copied whole is behind in the target, and nothing is signed for it alone. Returns
 * how many heads there are.
 */
export async function completeLog(
  source: Pick<LogSource, 'trees'>,
  target: LogOfStore & { readonly signedHeads: SignedHeads },
  serviceName: string,
): Promise<number> {
  let heads = 0;
  for (const kind of ['ledger', 'master'] as const)
    await forEachConcurrently(headsUnder(source.trees, serviceName), headsAtOnceMax, async ({ origin, head }) => {
      if (parseOrigin(origin)?.kind !== kind) return;
      await target.signedHeads.raise(origin, head.size, head.root);
      heads += 1;
    });
  const { log, version } = await readLog(target.records);
  if (log !== null && log.keyspaceId === unfinishedCopy)
    await writeLog(target.records, { ...log, keyspaceId: target.stamp.storeId }, version);
  return heads;
}

async function refuseBehind({ ledgers, trees }: LogSource, { origin: name }: LogRecord, now: () => number) {
  const expected = new ExpectedTrees(ledgers, now);
  await forEachConcurrently(headsUnder(trees, name), checksAtOnceMax, async ({ origin, head }) => {
    const why = await whyBehind(expected, origin, head).catch((error: unknown) => {
      // A damaged ledger is copied up to the damage, and named then.
      if (isBrokenRow(error)) return null;
      throw error;
    });
    if (why !== null)
      throw new CopyRefused(
        `A log is behind (${why}): bring the missing events back, or run \`ledger-trust log new-origin NAME\` first.`,
      );
  });
}

/** The signed heads of the logs under a name. Throws CopyRefused for one that cannot be read. */
async function* headsUnder(
  trees: TreeInspection,
  serviceName: string,
): AsyncGenerator<{ readonly origin: string; readonly head: SignedHead }> {
  for await (const { origin, head } of trees.signedHeads()) {
    if (origin === null || head === null)
      throw new CopyRefused(
        `The signed head of ${origin ?? 'a log'} is damaged: restore a backup that is older than the damage, and copy that.`,
      );
    if (parseOrigin(origin)?.serviceName === serviceName) yield { origin, head };
  }
}
