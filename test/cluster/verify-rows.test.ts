import { isDeepStrictEqual } from 'node:util';
import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LedgerError } from '../../src/domain/errors.ts';
import { names } from '../../src/domain/event/projection.ts';
import { injectedFields } from '../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { ListMastersRequestSchema } from '../../src/gen/svc/v1/masters_pb.ts';
import { actorCollection } from '../../src/service/actors/actor-record.ts';
import { everyLink } from '../../src/service/delegation/links.ts';
import { checkMasterQuery, readMasterPage } from '../../src/service/masters/master-list.ts';
import { readEventPage } from '../../src/service/reading/event-page.ts';
import { checkEventQuery } from '../../src/service/reading/event-query.ts';
import { LedgerReading } from '../../src/service/reading/ledger-reading.ts';
import { boundedLedgers } from '../../src/service/walking/bounded-stores.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import { environmentOf, makeKeyspace, openStores, suiteSettings, withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { chainEntries } from '../support/chain-entries.ts';
import { append, buyer, createMaster, grant, openLedger, uuid } from '../support/commands.ts';
import { runCli } from '../support/scrub-cli.ts';
import { authority, authorityPublicKey, chainOf } from '../support/world.ts';
import { type RowScene, rowDamages } from './damage/row-damages.ts';

interface Found {
  readonly ledger_id: string | null;
  readonly type: string;
  readonly detail: string;
  readonly table: string;
  readonly key: string;
  readonly remedy: string;
}

const codeOf = (error: unknown) => (error instanceof LedgerError ? error.code : error);

/** The ids of the n-th scene. No other scene has them. */
const idsOf = (n: number) => ({ ledgerId: uuid(0x1000 + n), masterId: uuid(0x2000 + n), actorId: uuid(0x3000 + n) });

await describeOnCassandra('cluster verify of a keyspace with every kind of damaged row', (address) => {
  const settings = suiteSettings(address);
  const env = environmentOf(settings);
  let stores: CassandraStores;
  let findings: readonly Found[] = [];
  let code = -1;

  async function makeScene(n: number): Promise<void> {
    const { ledgerId, masterId, actorId } = idsOf(n);
    const chain = chainOf(openLedger({ ledgerId }), createMaster({ ledgerId, masterId }));
    const [facts, master] = [chain.ledger.facts, chain.masters.get(masterId)?.facts];
    if (facts === null || master === undefined) throw new Error('no master');
    for (let at = 0; at < 10; at++)
      chain.run(append({ ledgerId, masterId, payload: canonicalJson({ ...injectedFields(facts, master), at }) }));
    chain.run(grant({ ledgerId, scope: 'ledger', actorId: buyer }));
    const { events } = chain;
    await stores.ledgers.append(await stores.ledgers.claim(ledgerId), chainEntries(events));
    const actor = {
      actorId,
      role: 'x',
      world: 'sandbox',
      entity: null,
      developer: null,
      createdAt: `at ${n}`,
      keys: [],
    } as const;
    await actorCollection(stores.records).create(actor);
  }

  beforeAll(async () => {
    await makeKeyspace(settings);
    stores = await openStores(settings, Date.now);
    const publicKey = Buffer.from(authorityPublicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64');
    const key = {
      kid: authority.keyId,
      publicKey,
      validFrom: '2020-01-01T00:00:00.000Z',
      validTo: null,
      startSig: null,
    };
    const value = JSON.stringify({ keys: [key] });
    await stores.records.put({ kind: 'authority', id: 'keys', replaces: 'absent', value, lookups: [] });
    await Promise.all(Array.from({ length: rowDamages.length + 1 }, (_, n) => makeScene(n)));
    const before = await runCli(env, ['cluster', 'verify', '--all', '--json']);
    expect((JSON.parse(before.out) as { findings: Found[] }).findings).toEqual([]);
    await withClient(settings, async (client) => {
      for (const [n, { change }] of rowDamages.entries()) {
        const scene: RowScene = {
          ...idsOf(n),
          other: idsOf(rowDamages.length),
          run: async (cql, ...params) => (await client.execute(cql, [...params], { prepare: true })).rows,
        };
        await change(scene);
      }
    });
    const after = await runCli(env, ['cluster', 'verify', '--all', '--json']);
    expect(after.err).toBe('');
    code = after.code;
    findings = (JSON.parse(after.out) as { findings: Found[] }).findings;
  }, 120_000);
  afterAll(() => stores[Symbol.asyncDispose]());

  const ofScene = (n: number) => {
    const ids = Object.values(idsOf(n));
    return findings.filter(({ ledger_id, detail, key }) =>
      ids.some((id) => `${ledger_id} ${detail} ${key}`.includes(id)),
    );
  };

  test('exits with 1 and says where each finding is and what to do', () => {
    expect(code).toBe(1);
    for (const { table, key, remedy, detail } of findings) {
      expect(table).toMatch(/^[a-z_]+( and [a-z]+|, .+)?$/);
      expect(key).toMatch(/\S/);
      expect(remedy).toMatch(/\w+ \w+/);
      expect(detail).toMatch(/\w+ \w+/);
    }
  });

  test('names every damage in its table, and nothing that is sound', () => {
    const missed = rowDamages.flatMap(({ name, found, table }, n) => {
      const own = ofScene(n).map((finding) => `${finding.type} in ${finding.table}: ${finding.detail}`);
      const isNamed = own.some((text) => found.some((type) => text.startsWith(`${type} in ${table}:`)));
      return (found.length === 0 ? own.length === 0 : isNamed) ? [] : [{ name, found, own }];
    });
    expect(missed).toEqual([]);
  });

  test('names cells with a wrong time in their ledger alone too', async () => {
    // One for each table, because each run opens the store anew.
    const misdated = new Map(
      rowDamages.flatMap(({ found, table, name }, n) =>
        found[0] === 'wrong_writetime' && table !== 'record' ? [[table, { n, table, name }] as const] : [],
      ),
    );
    const missed: unknown[] = [];
    for (const { n, table, name } of misdated.values()) {
      const { out } = await runCli(env, ['cluster', 'verify', idsOf(n).ledgerId, '--json']);
      const own = (JSON.parse(out) as { findings: Found[] }).findings;
      if (own.length !== 1 || own[0]?.type !== 'wrong_writetime' || own[0].table !== table) missed.push({ name, own });
    }
    expect(missed).toEqual([]);
    expect([...misdated.keys()]).toEqual(['ledger_event', 'cell', 'line', 'ledger', 'snapshot']);
  });

  /** Everything of a scene's master, as its readers see it. Each read that fails is named with its error code. */
  async function readsOfMaster({ ledgerId, masterId }: ReturnType<typeof idsOf>): Promise<Record<string, unknown>> {
    const reading = new LedgerReading(stores.ledgers, Date.now);
    const walk = unboundedWalk();
    const walked = boundedLedgers(walk, stores.ledgers);
    const masters = checkMasterQuery(create(ListMastersRequestSchema));
    const query = checkEventQuery({} as Parameters<typeof checkEventQuery>[0]);
    const source = { ledgerId, scopes: [names.masterEvents(masterId)], kind: 'master' } as const;
    const page = { limit: 10, offset: 0, descending: false };
    const reads: Record<string, () => Promise<unknown>> = {
      master: async () => (await reading.masterFacts(masterId))?.ledgerId,
      events: async () => {
        const { events, issues } = await readEventPage(walked, async () => [], source, query);
        return issues.length > 0 ? 'issues' : events.length;
      },
      masters: async () => (await readMasterPage(walk, stores.ledgers, reading, ledgerId, null, masters)).items.length,
      links: async () => (await everyLink(walked, { scope: 'ledger', id: ledgerId }, page)).length,
    };
    const found = Object.entries(reads).map(async ([name, read]) => [name, await read().catch(codeOf)] as const);
    return Object.fromEntries(await Promise.all(found));
  }

  test('leaves masters readable whose cell can be read, and the lists of masters and of links', async () => {
    const wrong: unknown[] = [];
    for (const [n, { name, reads, ofMaster }] of rowDamages.entries()) {
      const got = await readsOfMaster(idsOf(n));
      // Not every damage of the log is one of the master's events. None is left out without an issue.
      const events = reads === 'issues' && got.events === 'issues' ? 'issues' : 11;
      const want = { master: idsOf(n).ledgerId, events, masters: 1, links: 1, ...ofMaster };
      if (!isDeepStrictEqual(got, want)) wrong.push({ name, got, want });
    }
    expect(wrong).toEqual([]);
  });

  test('leaves every ledger readable: damage of a log is reported as issues', async () => {
    const wrong: unknown[] = [];
    for (const [n, { name, reads }] of rowDamages.entries()) {
      const { ledgerId } = idsOf(n);
      try {
        const facts = await new LedgerReading(stores.ledgers, Date.now).ledgerFacts(ledgerId);
        const source = { ledgerId, scopes: null, kind: 'ledger' } as const;
        const query = checkEventQuery({} as Parameters<typeof checkEventQuery>[0]);
        const walked = boundedLedgers(unboundedWalk(), stores.ledgers);
        const { issues } = await readEventPage(walked, async () => [], source, query);
        const got = facts === null ? 'nothing' : issues.length > 0 ? 'issues' : 'whole';
        if (got !== reads) wrong.push({ name, reads, got, issues });
      } catch (error) {
        wrong.push({ name, reads, error });
      }
    }
    expect(wrong).toEqual([]);
  });
});
