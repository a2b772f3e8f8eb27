import { isoTime } from '../../domain/values/time.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { type Authority, readAuthority } from './authority.ts';

/** How long after a read of the authority record a node may seal with its key: several reads may fail meanwhile. */
const authorityTrustMs = 10_000;
const lookEveryMs = 2_000;
/** Interval after a failed read. */
const lookAgainMs = 500;
/** Two clocks may each be off by half a second. */
const clocksDifferMs = 1_000;

/**
 * How long after the start of a rotation some node may still date an event under the old key, by the clock of the
 * process that rotates.
 */
export const rotationLeadMs = authorityTrustMs + clocksDifferMs;

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
export class AuthorityWatch {
  readonly #parts: AuthorityWatchParts;
  #cancel = () => {};
  #stopped = false;

  constructor(parts: AuthorityWatchParts) {
    this.#parts = parts;
  }

  /** Rejects if the first check fails. */
  async start(): Promise<void> {
    await this.#look();
    this.#lookIn(lookEveryMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #lookIn(delayMs: number, failedBefore = false): void {
    if (this.#stopped) return;
    this.#cancel = this.#parts.clock.after(delayMs, () => {
      this.#look().then(
        () => this.#lookIn(lookEveryMs),
        (error) => {
          // Of successive failures only the first is reported.
          if (!failedBefore) this.#parts.warn('looking at the keys of the authority failed', error);
          this.#lookIn(lookAgainMs, true);
        },
      );
    });
  }

  async #look(): Promise<void> {
    const { records, authority, clock, warn } = this.#parts;
    const before = untrusted(authority);
    const readAt = clock.now();
    authority.learn(await readAuthority(records), isoTime(readAt + authorityTrustMs));
    const now = untrusted(authority);
    if (now !== null && now !== before) warn(now);
  }
}

/** Why the node cannot seal events, as a sentence for its operator. null if it can. */
export function untrusted(authority: Authority): string | null {
  switch (authority.standing) {
    case 'in use':
      return null;
    case 'rotating':
      return 'a rotation of the authority has begun and is not finished: run `cluster rotate-authority` again if it was broken off';
    case 'ended':
      return 'the authority has another key now: start this node with it in AUTHORITY_KEY_FILE';
  }
}
