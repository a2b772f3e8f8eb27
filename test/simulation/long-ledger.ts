import { TILE_HASHES } from '../../src/domain/log/tiles.ts';
import { isoTime } from '../../src/domain/values/time.ts';
import { CassandraLedgerStore } from '../../src/store/cassandra/log/ledger-store.ts';
import type { LedgerEntry } from '../../src/store/ledger-store.ts';
import { chainEntries } from '../support/chain-entries.ts';
import { append, createMaster, openLedger } from '../support/commands.ts';
import { Chain } from '../support/world.ts';
import { directSession } from './cassandra.ts';
import { firstMasters, ledgerIds } from './commands.ts';
import type { World } from './node.ts';
import { damagedEvery } from './proofs.ts';

/** The first tile becomes full during the run. */
const eventsBefore = TILE_HASHES - 16;
const [ledgerId = ''] = ledgerIds;
let entries: readonly LedgerEntry[] | null = null;

/** Gives the first ledger a past, so that a run fills a tile. */
export async function makeLong({ tables, time, random, bucketEvents }: World): Promise<void> {
  entries ??= pastEntries(isoTime(time.now - 1_000));
  const store = new CassandraLedgerStore({
    session: directSession(tables),
    now: () => time.now,
    random: (bytes) => random.bytes(bytes),
    bucketEvents,
  });
  const claim = await store.claim(ledgerId);
  for (let at = 0; at < entries.length; at += bucketEvents)
    await store.append(claim, entries.slice(at, at + bucketEvents));
}

/** A row in eight is damaged when the tile becomes full, until it is restored. */
export function damageRows({ nodes, time, random }: World): void {
  const damaged = { remainder: random.between(0, damagedEvery - 1), met: () => {} };
  for (const node of nodes.values()) node.damaged = damaged;
  time.after(random.between(300, 1_200), () => {
    for (const node of nodes.values()) node.damaged = null;
  });
}

function pastEntries(at: string): readonly LedgerEntry[] {
  const chain = new Chain();
  const masters = firstMasters(ledgerId);
  chain.run(openLedger({ ledgerId }), at);
  for (const [index, masterId] of masters.entries())
    chain.run(createMaster({ ledgerId, masterId, businessRef: `PO-${index}` }), at);
  while (chain.events.length < eventsBefore) {
    const count = chain.events.length;
    const masterId = masters[count % masters.length] ?? '';
    chain.run(append({ ledgerId, masterId, payload: `{"past":${count}}` }), at);
  }
  return chainEntries(chain.events);
}
