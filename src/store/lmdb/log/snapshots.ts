import type { Snapshot } from '../../ledger-store.ts';
import type { Commits } from '../commits.ts';
import { textKey } from '../keys.ts';
import type { Tables } from '../tables.ts';

const ATTEMPTS_MAX = 10;
const FORM = /^(\d+) (\d+) ([0-9a-f]{64})\n/;

/** Fold version, seq and hash are in the first line, so that comparing snapshots needs no parsing of states. */
export class LmdbSnapshots {
  readonly #tables: Tables;
  readonly #commits: Commits;

  constructor(tables: Tables, commits: Commits) {
    this.#tables = tables;
    this.#commits = commits;
  }

  get(owner: string): Snapshot | null {
    const text = this.#tables.snapshots.get(textKey(owner));
    return text === undefined ? null : parseSnapshot(text);
  }

  async save(owner: string, snapshot: Snapshot): Promise<void> {
    const { snapshots } = this.#tables;
    const key = textKey(owner);
    const { foldVersion, seq, hash, state } = snapshot;
    const text = `${foldVersion} ${seq} ${hash}\n${state}`;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      this.#commits.checkUsable();
      snapshots.resetReadTxn();
      const stored = snapshots.getEntry(key);
      if (stored !== undefined && isNewer(parseSnapshot(stored.value), snapshot)) return;
      const version = stored?.version ?? 0;
      const write = () => snapshots.put(key, text, version + 1);
      const held = await this.#commits.writeRepeatable('The store did not say whether the snapshot was saved.', () =>
        stored === undefined ? snapshots.ifNoExists(key, write) : snapshots.ifVersion(key, version, write),
      );
      if (held) return;
    }
  }
}

function isNewer(stored: Snapshot | null, snapshot: Snapshot): boolean {
  return stored !== null && stored.foldVersion === snapshot.foldVersion && stored.seq > snapshot.seq;
}

function parseSnapshot(text: string): Snapshot | null {
  const form = FORM.exec(text);
  if (form === null) return null;
  const [line, foldVersion = '', seq = '', hash = ''] = form;
  return { foldVersion: Number(foldVersion), seq: Number(seq), hash, state: text.slice(line.length) };
}
