import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { batchEventsMax } from '../../src/actors/bounds.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { Commits } from '../../src/store/lmdb/commits.ts';
import { LmdbLedgerStore } from '../../src/store/lmdb/log/ledger-store.ts';
import { openWholeLmdb } from '../../src/store/lmdb/open-whole.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import { environmentOf, makeKeyspace, openStores, suiteSettings } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { chainEntries } from '../support/chain-entries.ts';
import { append, createMaster, ledgerId, openLedger } from '../support/commands.ts';
import { compileCache } from '../support/compile-cache.ts';
import { isNightly } from '../support/nightly.ts';
import { runNode, suiteDir } from '../support/running-node.ts';
import { runCli } from '../support/scrub-cli.ts';
import { chainOf } from '../support/world.ts';

/** A copy of so many events takes long enough to be killed so often. */
const [eventCount, killsAt] = isNightly ? [8_000, [100, 2_000, 4_000]] : [4_000, [100]];

/** Makes the data directory of a node, with a long ledger. */
async function makeLongLedger(dataDir: string): Promise<void> {
  {
    await using _ = await runNode({ dataDir });
  }
  const appends = Array.from({ length: eventCount - 3 }, (_, n) => append({ payload: `{"n":${n}}` }));
  const entries = chainEntries(chainOf(openLedger(), createMaster(), ...appends).events);
  const tables = openTables(dataDir);
  const commits = new Commits(() => {});
  const store = new LmdbLedgerStore(tables, commits, Date.now);
  const claim = await store.claim(ledgerId);
  for (let from = 0; from < entries.length; from += batchEventsMax)
    await store.append(claim, entries.slice(from, from + batchEventsMax));
  commits.close();
  await tables.root.close();
}

async function rowsOf(store: LedgerStore): Promise<string[]> {
  const rows: string[] = [];
  for (;;) {
    const page = await store.read(ledgerId, rows.length, 1_000);
    if (page.length === 0) return rows;
    rows.push(...page.map(({ row }) => row));
  }
}

async function sourceRows(dataDir: string): Promise<string[]> {
  await using source = await openWholeLmdb(dataDir, Date.now);
  return await rowsOf(source.ledgers);
}

await describeOnCassandra('a copy that is killed', (address) => {
  const dataDir = suiteDir();
  const settings = suiteSettings(address);
  const env = { DATA_DIR: dataDir, ...environmentOf(settings) };
  let target: CassandraStores;

  beforeAll(async () => {
    await makeLongLedger(dataDir);
    await makeKeyspace(settings, 1_024);
    target = await openStores(settings, Date.now);
  }, 60_000);
  afterAll(() => target?.[Symbol.asyncDispose]());

  /** Runs `copy` until the target holds so many events, and kills it. */
  async function copyUntil(events: number): Promise<void> {
    const program = fileURLToPath(new URL('../../cluster/cli.ts', import.meta.url));
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, [program, 'copy', '--from', 'lmdb', '--to', 'cassandra'], {
      env: { PATH, ...compileCache, ...env },
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    while (child.exitCode === null && ((await target.ledgers.head(ledgerId))?.seq ?? -1) < events) await pause(5);
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
  }

  test('leaves a correct beginning after each kill, continues when it is run again, and copies every event once', async () => {
    const rows = await sourceRows(dataDir);
    expect(rows.length).toBe(eventCount);
    for (const events of killsAt) {
      await copyUntil(events);
      const copied = await rowsOf(target.ledgers);
      expect(copied.length).toBeGreaterThan(events);
      expect(copied.length).toBeLessThan(eventCount);
      expect(copied).toEqual(rows.slice(0, copied.length));
    }
    const { code, out, err } = await runCli(env, ['copy', '--from', 'lmdb', '--to', 'cassandra']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain(`Copied ${eventCount} events in 1 ledger, `);
    expect(await rowsOf(target.ledgers)).toEqual(rows);
  }, 120_000);
});
