import type { Snapshot } from '../../ledger-store.ts';
import type { Commits } from '../commits.ts';
import { textKey } from '../keys.ts';
import type { Tables } from '../tables.ts';

const ATTEMPTS_MAX = 10;
/** Fold version, seq and hash are in the first line, so that comparing snapshots needs no parsing of states. */
const FORM = /^(\d+) (\d+) ([0-9a-f]{64})\n/;

export function readSnapshot({ snapshots }: Tables, owner: string): Snapshot | null {
  const text = snapshots.get(textKey(owner));
  return text === undefined ? null : parseSnapshot(text);
}

export async function writeSnapshot(
  { snapshots }: Tables,
  commits: Commits,
  owner: string,
  snapshot: Snapshot,
): Promise<void> {
  const key = textKey(owner);
  const { foldVersion, seq, hash, state } = snapshot;
  const text = `${foldVersion} ${seq} ${hash}\n${state}`;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    commits.checkUsable();
    snapshots.resetReadTxn();
    const stored = snapshots.getEntry(key);
    const found = stored === undefined ? null : parseSnapshot(stored.value);
    if (found?.foldVersion === foldVersion && found.seq > seq) return;
    const version = stored?.version ?? 0;
    const write = () => snapshots.put(key, text, version + 1);
    const held = await commits.writeRepeatable('The store did not say whether the snapshot was saved.', () =>
      stored === undefined ? snapshots.ifNoExists(key, write) : snapshots.ifVersion(key, version, write),
    );
    if (held) return;
  }
}

function parseSnapshot(text: string): Snapshot | null {
  const form = FORM.exec(text);
  if (form === null) return null;
  const [line, foldVersion = '', seq = '', hash = ''] = form;
  return { foldVersion: Number(foldVersion), seq: Number(seq), hash, state: text.slice(line.length) };
}
