import { formatSignedHead, readSignedHead, type SignedHead, type SignedHeads } from '../../signed-heads.ts';
import { checkSignedHead } from '../../write-checks.ts';
import type { Commits } from '../commits.ts';
import { textKey } from '../keys.ts';
import type { Tables } from '../tables.ts';

/** The signed heads of one LMDB environment. The version of a head is its size, which conditional writes compare. */
export class LmdbSignedHeads implements SignedHeads {
  readonly #openTables: Tables;
  readonly #commits: Commits;

  constructor(tables: Tables, commits: Commits) {
    this.#openTables = tables;
    this.#commits = commits;
  }

  async get(origin: string): Promise<SignedHead | null> {
    this.#commits.checkReadable();
    const stored = this.#fresh(textKey(origin));
    return stored === undefined ? null : readSignedHead(origin, stored.value);
  }

  async raise(origin: string, size: number, root: Uint8Array): Promise<void> {
    checkSignedHead(origin, size, root);
    const key = textKey(origin);
    const value = formatSignedHead(origin, size, root);
    for (let isDone = false; !isDone; ) {
      // Checked before the head is read: after a failed write, what LMDB shows need not be durable.
      this.#commits.checkUsable();
      const { signedHeads } = this.#openTables;
      const before = this.#fresh(key)?.version ?? 0;
      if (before >= size) return;
      const put = () => signedHeads.put(key, value, size);
      // It fails only if another raise has landed since the head was read.
      isDone = await this.#commits.writeRepeatable('The store did not say whether the signed head was written.', () =>
        before === 0 ? signedHeads.ifNoExists(key, put) : signedHeads.ifVersion(key, before, put),
      );
    }
  }

  #fresh(key: Buffer) {
    const { signedHeads } = this.#openTables;
    signedHeads.resetReadTxn();
    return signedHeads.getEntry(key);
  }
}
