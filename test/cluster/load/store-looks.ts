import { randomBytes } from 'node:crypto';
import { afterMs } from '../../../cluster/local/ports.ts';
import { openCassandra } from '../../../src/store/cassandra/open.ts';
import type { CassandraSettings } from '../../../src/store/cassandra/session/settings.ts';
import type { LoadHistory } from './load-history.ts';

const everyMs = 500;

/**
 * Notes the heads of ledgers as the store has them, read without the nodes, until it is disposed of. What a follower
 * was sent before such a read, the read must see.
 */
export async function lookAtStore(
  settings: CassandraSettings,
  ledgerIds: readonly string[],
  history: LoadHistory,
): Promise<AsyncDisposable> {
  const stores = await openCassandra({ settings, now: Date.now, random: (bytes) => randomBytes(bytes) });
  let isStopped = false;
  const look = async (ledgerId: string) => {
    const begun = history.tick();
    // The store may be away.
    const head = await stores.ledgers.head(ledgerId).catch(() => undefined);
    if (head === undefined) return;
    history.looks.push({ ledgerId, scope: '', begun, ended: history.tick(), headSeq: head?.seq ?? -1, seqs: [] });
  };
  const looking = (async () => {
    for (let at = 0; !isStopped; at += 1) {
      await look(ledgerIds[at % ledgerIds.length] ?? '');
      await afterMs(everyMs);
    }
  })();
  const stack = new AsyncDisposableStack();
  stack.use(stores);
  stack.defer(async () => {
    isStopped = true;
    await looking;
  });
  return stack;
}
