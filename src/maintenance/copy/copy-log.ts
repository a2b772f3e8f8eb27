import { isStamped } from '../../service/log-identity/log-identity.ts';
import { logRules, readLog, writeLog } from '../../service/log-identity/log-record.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { StoreStamp } from '../../store/store-stamp.ts';
import { CopyRefused } from './copy-ledger.ts';

interface LogOfStore {
  readonly records: RecordStore;
  readonly stamp: StoreStamp;
}

/** Whether a record says under which name and key the logs are signed. It holds for one store alone. */
export function isOfLog({ kind }: { readonly kind: string }): boolean {
  return kind === logRules.kind;
}

/**
 * Gives the target the name and the keys of the source's logs, if its nodes are to go on under this name. Then the
 * source must not sign again. Returns whether they do. Throws CopyRefused if the source is a restored copy: nobody
 * knows what was signed for it.
 */
export async function copyLog(source: LogOfStore, target: LogOfStore, logOrigin: string | null): Promise<boolean> {
  const { log } = await readLog(source.records);
  if (log === null ? source.stamp.isCopy() : isStamped(log, source.stamp))
    throw new CopyRefused(
      'The data was restored from a copy: run `ledger-trust log new-origin NAME` first, or `ledger-trust log keep` if nothing was signed since.',
    );
  if (log === null) return false;
  const { log: present, version } = await readLog(target.records);
  if (present !== null) return present.origin === log.origin;
  if (logOrigin !== null && logOrigin !== log.origin) return false;
  await writeLog(target.records, { ...log, keyspaceId: target.stamp.keyspaceId }, version);
  return true;
}
