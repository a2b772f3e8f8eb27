import type { Clock } from '../../actors/clock.ts';
import { isoTime } from '../../domain/time.ts';
import type { RecordStore } from '../../store/record-store.ts';
import { type Authority, readAuthority } from './authority.ts';

/** How long after a look at the store a node seals events under its key: several looks may fail. */
const authorityTrustMs = 10_000;
const lookEveryMs = 2_000;
/** After a look that failed: once the store is back the node is not to wait long. */
const lookAgainMs = 500;
/** Each of two clocks may be off by half a second (decisions.md, section 4). */
const clocksDifferMs = 1_000;

/** How long after a rotation was begun some node may date an event under the old key, by the clock of whoever rotates. */
export const rotationLeadMs = authorityTrustMs + clocksDifferMs;

export interface AuthorityWatchParts {
  readonly records: RecordStore;
  readonly authority: Authority;
  readonly clock: Clock;
  /** Is told what failed, or what the operator has to know; the node goes on. */
  readonly warn: (what: string, error?: unknown) => void;
}

/**
 * Looks now and again whether a node's key is the authority's still. The seal of a key that has ended would be invalid for good, so a
 * rotation counts on this alone, not on the nodes being stopped: it begins, waits for `rotationLeadMs`, and ends the key then.
 */
export class AuthorityWatch {
  readonly #parts: AuthorityWatchParts;
  #cancel = () => {};
  #stopped = false;

  constructor(parts: AuthorityWatchParts) {
    this.#parts = parts;
  }

  /** Looks for the first time, and goes on by itself. Throws where that look fails. */
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
          // Of looks that fail one after the other the first is told.
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

/** Why the node cannot seal events, as a sentence for its operator; null: it can. */
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
