import type { HeldGrant } from '../reading/ledger-reading.ts';
import type { GrantsMemory } from './grants-memory.ts';
import type { ReaderAccess } from './reader-access.ts';

/**
 * The accesses of delegates of single masters that follow one ledger. Such an access may rest on thousands of grants.
 * So all streams of an actor share one, and the memory budget counts it.
 */
export class SharedAccesses {
  readonly #memory: GrantsMemory;
  /** The one that a new stream of the actor may share. */
  readonly #newest = new Map<string, ReaderAccess>();
  readonly #users = new Map<ReaderAccess, number>();

  constructor(memory: GrantsMemory) {
    this.#memory = memory;
  }

  /**
   * The access of a new stream: `own`, which was made of `held`, or that of earlier streams of the actor if they may
   * read on and the log has told them of all that is stored. null: the memory budget has no room for it. Each access
   * that it returns is passed to `leave` at the end of the stream.
   */
  take(own: ReaderAccess, held: readonly HeldGrant[], nowMs: number): ReaderAccess | null {
    if (own.isWhole) return own;
    const shared = this.#newest.get(own.actorId);
    const isSame = shared?.fault(nowMs) === null && shared.knows(held);
    const access = isSame ? shared : own;
    if (access === own && !own.holdIn(this.#memory)) return null;
    this.#newest.set(own.actorId, access);
    this.#users.set(access, (this.#users.get(access) ?? 0) + 1);
    return access;
  }

  leave(access: ReaderAccess): void {
    const users = this.#users.get(access);
    if (users === undefined) return;
    if (users > 1) return void this.#users.set(access, users - 1);
    this.#users.delete(access);
    if (this.#newest.get(access.actorId) === access) this.#newest.delete(access.actorId);
    access.release();
  }
}
