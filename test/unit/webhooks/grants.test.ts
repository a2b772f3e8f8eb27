import { describe, expect, test } from 'vitest';
import { formatRow, parseRow } from '../../../src/domain/event/row.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { isoTime } from '../../../src/domain/values/time.ts';
import { LedgerReading } from '../../../src/service/reading/ledger-reading.ts';
import {
  append,
  buyer,
  createMaster,
  delegate,
  grant,
  ledgerId,
  openingFacts,
  openLedger,
  revoke,
  siblingId,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { second, webhookOrder } from '../../support/webhook-order.ts';
import { typesSent, type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls, storeWith } from '../../support/world.ts';

const [own, watching] = ['https://delegate.example/', 'https://watching.example/'];
const appended = (eventType: string, from: Parameters<typeof append>[0] = {}) => append({ eventType, ...from });
const onLedger = (link: number) => grant({ scope: 'ledger', role: 'AUDITOR', linkId: uuid(link) });
const onMaster = (link: number) => grant({ access: 'read', linkId: uuid(link) });

/** Whether the events after the subscription are fanned out one by one, or all of them at the end. */
const times = [
  { fannedOut: 'at once', isLate: false },
  { fannedOut: 'long afterwards', isLate: true },
];
/** Whether another subscription watches the ledger already, so that it has a cursor. */
const watchings = [
  { watched: 'without another subscription', isWatched: false },
  { watched: 'with another subscription', isWatched: true },
];
const ways = times.flatMap((time) => watchings.map((watching) => ({ ...time, ...watching })));

async function happens(
  { isLate, isWatched }: { isLate: boolean; isWatched: boolean },
  commands: readonly (Command | number)[],
): Promise<WebhookRig> {
  const world = await webhookOrder();
  await world.run(createMaster({ masterId: siblingId }));
  if (isWatched) await world.subscribe(buyer, { url: watching });
  await world.subscribe(delegate, { url: own });
  await world.quiet();
  if (isLate) world.kill();
  const unheard = world.rig.directory();
  for (const command of commands) {
    if (typeof command === 'number') await world.clock.advance(command);
    else if (isLate) await unheard.submit(command);
    else {
      await world.runToEnd(command);
    }
  }
  if (!isLate) return world;
  const next = await world.resumed();
  return next;
}

describe.each(ways)(
  'of ledgers that its owner was granted access to later, $watched, fanned out $fannedOut, it gets',
  (way) => {
    test('nothing from before its grant, and all from the grant on', async () => {
      const world = await happens(way, [appended('UNSEEN'), onLedger(1), appended('SEEN')]);
      expect(typesSent(world, own)).toEqual(['LEDGER_DELEGATION_GRANTED', 'SEEN']);
      if (way.isWatched) expect(typesSent(world, watching)).toContain('UNSEEN');
    });

    test('nothing of a master and of the ledger from before its grant, and nothing of a sibling', async () => {
      const toOther = (link: number) =>
        grant({ scope: 'ledger', role: 'AUDITOR', delegateActorId: stranger, linkId: uuid(link) });
      const world = await happens(way, [
        appended('UNSEEN'),
        toOther(1),
        onMaster(2),
        toOther(3),
        appended('SEEN'),
        appended('SIBLING', { masterId: siblingId }),
      ]);
      expect(typesSent(world, own)).toEqual(['MASTER_DELEGATION_GRANTED', 'LEDGER_DELEGATION_GRANTED', 'SEEN']);
    });

    test('nothing from between a revocation and the next grant', async () => {
      const world = await happens(way, [
        onMaster(1),
        appended('FIRST'),
        revoke(),
        appended('UNSEEN'),
        onMaster(2),
        appended('SECOND'),
      ]);
      const granted = 'MASTER_DELEGATION_GRANTED';
      expect(typesSent(world, own)).toEqual([granted, 'FIRST', granted, 'SECOND']);
    });

    test('nothing from between the end of a grant that ran out and the one that replaces it', async () => {
      const until = (link: number, seconds: number) =>
        grant({
          access: 'read',
          linkId: uuid(link),
          expiresAt: isoTime(Date.parse('2026-11-21T02:06:39.100Z') + seconds * second),
        });
      const world = await happens(way, [
        until(1, 5),
        appended('FIRST'),
        6 * second,
        appended('UNSEEN'),
        until(2, 60),
        appended('SECOND'),
      ]);
      const granted = 'MASTER_DELEGATION_GRANTED';
      expect(typesSent(world, own)).toEqual([granted, 'FIRST', granted, 'SECOND']);
    });

    test('all events while one grant replaces another, of the ledger or of the master', async () => {
      const world = await happens(way, [
        onMaster(1),
        appended('A'),
        onMaster(2),
        appended('B'),
        onLedger(3),
        appended('C'),
        revoke(),
        appended('D'),
      ]);
      const types = typesSent(world, own).filter((type) => !type.includes('DELEGATION'));
      expect(types).toEqual(['A', 'B', 'C', 'D']);
    });
  },
);

test('a delegate of an organization gets its ledger’s events from its grant on', async () => {
  const world = webhookRig();
  const facts = openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId: uuid(0x50) });
  await world.run(openLedger({ facts, registeredPayload: '{}' }), createMaster());
  await world.subscribe(delegate, { url: own });
  await world.runToEnd(appended('UNSEEN'), grant({ scope: 'organization', access: 'read' }), appended('SEEN'));
  expect(typesSent(world, own)).toEqual(['SUPPLIER_DELEGATION_GRANTED', 'SEEN']);
});

/** How many cells and lines of grants are read while these commands are fanned out. */
async function grantReads(commands: readonly Command[]): Promise<{ reads: number; types: string[] }> {
  const first = await webhookOrder();
  await first.subscribe(delegate, { url: own });
  await first.quiet();
  first.kill();
  const unheard = first.rig.directory();
  for (const command of commands) await unheard.submit(command);
  let reads = 0;
  const world = first.restarted({
    wrapLedgers: (inner) =>
      storeWith(inner, {
        cell: (key) => {
          reads += 1;
          return inner.cell(key);
        },
        lines: async (list, page) => {
          const lines = await inner.lines(list, page);
          if (!list.startsWith('ledgers:')) reads += lines.length;
          return lines;
        },
      }),
  });
  world.webhooks.start();
  // The limiter delays it between reads for longer than `quiet` waits for a post.
  for (let calm = 0; calm < 10; calm++) await world.quiet();
  return { reads, types: typesSent(world, own) };
}

test.each([
  { of: 'of the ledger', again: (link: number) => onLedger(link) },
  { of: 'of a master', again: (link: number) => onMaster(link) },
])('grants $of that replace each other cost reads in proportion to their number', async ({ again }) => {
  const grants = (count: number) => Array.from({ length: count }, (_, at) => again(0x1000 + at));
  const some = await grantReads(grants(192));
  const twice = await grantReads(grants(384));
  expect([some.types.length, twice.types.length]).toEqual([192, 384]);
  expect(twice.reads).toBeLessThan(2.2 * some.reads);
  expect(twice.reads).toBeLessThan(384 * 2);
});

const mastersOf = (count: number) => Array.from({ length: count }, (_, at) => uuid(0x2000 + at));
/** So many masters, each granted to the delegate. */
const withGrants = (masters: readonly string[]) =>
  masters.flatMap((masterId, at) => [
    createMaster({ masterId }),
    grant({ access: 'read', masterId, linkId: uuid(0x3000 + at) }),
  ]);

test('a delegate of many masters may read the ledger’s own events by the first grant in force', async () => {
  const granted = withGrants(mastersOf(100));
  const owns = (count: number) =>
    Array.from({ length: count }, (_, at) =>
      grant({ scope: 'ledger', role: 'AUDITOR', delegateActorId: stranger, linkId: uuid(0x4000 + at) }),
    );
  const without = await grantReads(granted);
  const { reads, types } = await grantReads([...granted, ...owns(64)]);
  expect(types.filter((type) => type === 'LEDGER_DELEGATION_GRANTED')).toHaveLength(64);
  expect(reads - without.reads).toBeLessThan(200);
});

test('a grant whose projections are not written yet gives access', async () => {
  const world = await webhookOrder({
    wrapLedgers: (inner) =>
      storeWith(inner, {
        cell: async () => null,
        lines: async (list, page) => (list.startsWith('grant-changes:') ? [] : inner.lines(list, page)),
      }),
  });
  await world.run(onMaster(1));
  await world.subscribe(delegate, { url: own, ledgerId });
  await world.runToEnd(onMaster(2));
  expect(typesSent(world, own)).toEqual(['MASTER_DELEGATION_GRANTED']);
});

test.each(['{"link_id":1}', '{}', '"x"'])(
  'a damaged stored grant (%s) does not delay other deliveries',
  async (payload) => {
    const damaged = (row: string) => {
      const event = parseRow(row);
      return event.eventType === 'MASTER_DELEGATION_GRANTED' ? formatRow({ ...event, payload }) : row;
    };
    const world = await webhookOrder({
      wrapLedgers: (inner) =>
        storeWith(inner, {
          read: async (id, from, limit) =>
            (await inner.read(id, from, limit)).map((entry) => ({ ...entry, row: damaged(entry.row) })),
        }),
    });
    await world.subscribe(buyer, { url: watching });
    await world.subscribe(delegate, { url: own });
    await world.runToEnd(onMaster(1), appended('NEXT'));
    expect(typesSent(world, watching)).toEqual(['NEXT']);
  },
);

test('a subscription that names the ledger gets nothing from before its owner’s newest grant either', async () => {
  const world = await webhookOrder();
  await world.subscribe(buyer, { url: watching });
  await world.run(onMaster(1));
  await world.subscribe(delegate, { url: own, ledgerId });
  await world.run(revoke());
  await world.runToEnd(appended('UNSEEN'), onMaster(2), appended('SEEN'));
  expect(typesSent(world, own)).toEqual(['MASTER_DELEGATION_GRANTED', 'SEEN']);
});

test('an own event of the ledger is sent if the grant of one of the masters is in force', async () => {
  const world = await webhookOrder();
  await world.run(...withGrants(mastersOf(100)));
  let cells = 0;
  const store = beforeCalls(world.rig.memory, { cell: () => void cells++ });
  const reading = new LedgerReading(store, () => world.clock.now());
  const may = (actorId: string) => reading.mayReadEvent(actorId, ledgerId, null, store);
  expect([await may(delegate), cells < 10]).toEqual([true, true]);
  expect([await may(supplier), await may(stranger)]).toEqual([true, false]);
  for (const masterId of mastersOf(100)) await world.run(revoke({ masterId }));
  expect(await may(delegate)).toBe(false);
});
