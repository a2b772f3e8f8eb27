import type { Clock } from '../../runtime/clock/clock.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { RecordWatch, recordTrustMs } from '../records/record-watch.ts';
import type { LogIdentity } from './log-identity.ts';
import { readLog } from './log-record.ts';

/** How long after a change of the log's record a node may go on signing as before, s. */
export const signsOnForS = recordTrustMs / 1_000;

interface LogWatchParts {
  readonly records: RecordStore;
  readonly logIdentity: LogIdentity;
  readonly clock: Clock;
  readonly warn: (what: string, error?: unknown) => void;
}

/**
 * Checks periodically whether the store's logs are still signed under this node's name and key. The commands that
 * change them need all nodes stopped, and may not see one: this node signs nothing any more then.
 */
export function watchLog({ records, logIdentity, clock, warn }: LogWatchParts): RecordWatch {
  let trustedUntilMs = Number.NEGATIVE_INFINITY;
  let isReplaced = false;
  // Compared with the clock at each call: a process that was paused trusts no old read.
  const isCurrent = () => !isReplaced && clock.now() <= trustedUntilMs;
  return new RecordWatch({
    clock,
    read: async (untilMs) => {
      const { log } = await readLog(records);
      trustedUntilMs = untilMs;
      const wasReplaced = isReplaced;
      isReplaced = !logIdentity.isOf(log);
      if (isReplaced && !wasReplaced) warn(replaced);
      // Not before the first read: nothing is known until then.
      logIdentity.behind.signOnlyWhile(isCurrent);
    },
    failed: (error) => warn('looking at the record of the log failed', error),
  });
}

const replaced =
  'the logs of this store have another name or key now, or are those of another copy, so this node signs no checkpoint any more: stop it, and start it with the LOG_ORIGIN and LOG_KEY_FILE of the other nodes';
