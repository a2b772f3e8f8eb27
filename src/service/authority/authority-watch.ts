import { isoTime } from '../../domain/values/time.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { RecordWatch, recordTrustMs } from '../records/record-watch.ts';
import { type Authority, readAuthority } from './authority.ts';

/** Two clocks may each be off by half a second. */
const clocksDifferMs = 1_000;

/**
 * How long after the start of a rotation some node may still date an event under the old key, by the clock of the
 * process that rotates.
 */
export const rotationLeadMs = recordTrustMs + clocksDifferMs;

interface AuthorityWatchParts {
  readonly records: RecordStore;
  readonly authority: Authority;
  readonly clock: Clock;
  readonly warn: (what: string, error?: unknown) => void;
}

/**
 * Checks periodically whether this node's key is still the authority's: a seal made with an ended key would be invalid
 * for good. A rotation begins, waits for `rotationLeadMs`, and then ends the key, so that nodes need not be stopped.
 */
export function watchAuthority({ records, authority, clock, warn }: AuthorityWatchParts): RecordWatch {
  return new RecordWatch({
    clock,
    read: async (trustedUntilMs) => {
      const before = untrusted(authority);
      authority.learn(await readAuthority(records), isoTime(trustedUntilMs));
      const now = untrusted(authority);
      if (now !== null && now !== before) warn(now);
    },
    failed: (error) => warn('looking at the keys of the authority failed', error),
  });
}

/** Why the node cannot seal events, as a sentence for its operator. null if it can. */
export function untrusted(authority: Authority): string | null {
  switch (authority.keyState) {
    case 'in use':
      return null;
    case 'rotating':
      return 'a rotation of the authority has begun and is not finished: run `cluster rotate-authority` again if it was broken off';
    case 'ended':
      return 'the authority has another key now: start this node with it in AUTHORITY_KEY_FILE';
  }
}
