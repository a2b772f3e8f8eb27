import type { Snapshot } from '../../ledger-store.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, numberOf, textOf } from '../session/session.ts';
import { clockSkewMs } from '../writetimes.ts';

const ALL = preparedAtStart('SELECT fold_version, seq, hash, state, saved_at FROM snapshot WHERE owner = ?');
const SAVE = preparedAtStart(
  'INSERT INTO snapshot (owner, fold_version, seq, hash, state, saved_at) VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?',
);

/**
 * Returns the snapshot that was saved last. Each fold version has a row of its own. The row's timestamp follows from
 * the seq, so that an older snapshot does not replace a newer one. The clock decides which fold version was saved last,
 * which is enough for a cache.
 */
export async function readSnapshot(session: CqlSession, owner: string, nowMs: number): Promise<Snapshot | null> {
  const rows = await session.read({ cql: ALL, params: [keyText(owner)] });
  let newest: Snapshot | null = null;
  let newestSavedAt = 0;
  for (const row of rows) {
    const [foldVersion, seq] = [numberOf(row, 'fold_version'), numberOf(row, 'seq')];
    const [hash, state] = [textOf(row, 'hash'), textOf(row, 'state')];
    if (foldVersion === null || seq === null || hash === null || state === null) continue;
    const saidAt = numberOf(row, 'saved_at') ?? 0;
    // A time that is ahead says nothing: for good it would hide the snapshots of the other fold versions.
    const savedAt = saidAt > nowMs + clockSkewMs ? 0 : saidAt;
    // Rows are sorted by fold version. Of two snapshots saved in the same millisecond the higher version wins.
    if (savedAt < newestSavedAt) continue;
    newest = { foldVersion, seq, hash, state };
    newestSavedAt = savedAt;
  }
  return newest;
}

export async function writeSnapshot(
  session: CqlSession,
  owner: string,
  { foldVersion, seq, hash, state }: Snapshot,
  nowMs: number,
): Promise<void> {
  const params = [keyText(owner), foldVersion, BigInt(seq), hash, state, BigInt(nowMs), BigInt(seq + 1)];
  await session.write([{ cql: SAVE, params }]);
}
