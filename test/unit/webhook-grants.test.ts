import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/domain/command.ts';
import { isoTime } from '../../src/domain/time.ts';
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
} from '../support/commands.ts';
import { second, webhookOrder } from '../support/webhook-order.ts';
import { type WebhookRig, webhookRig } from '../support/webhook-rig.ts';
import { storeWith } from '../support/world.ts';

const [own, watching] = ['https://delegate.example/', 'https://watching.example/'];
const typesTo = (world: WebhookRig, to: string) =>
  world.posts.filter(({ url }) => url === to).map(({ event }) => event.event_type);
const appended = (eventType: string, from: Parameters<typeof append>[0] = {}) => append({ eventType, ...from });
const onLedger = (link: number) => grant({ scope: 'ledger', role: 'AUDITOR', linkId: uuid(link) });
const onMaster = (link: number) => grant({ access: 'read', linkId: uuid(link) });

/** The delegate subscribes, and then all of this happens: followed as it comes, or only once all of it has happened. */
const followings = [
  { followed: 'as it comes', isLate: false },
  { followed: 'long after', isLate: true },
];
/** Whether somebody else watches the ledger already, so that it has a cursor. */
const watchings = [
  { watched: 'which nobody watches', isWatched: false },
  { watched: 'which another one watches', isWatched: true },
];
const ways = followings.flatMap((following) => watchings.map((watching) => ({ ...following, ...watching })));

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
      await world.run(command);
      await world.quiet();
    }
  }
  if (!isLate) return world;
  const next = world.restarted();
  next.webhooks.start();
  await next.quiet();
  return next;
}

describe.each(ways)(
  'of ledgers that its owner was granted access to later, $watched, followed $followed, it gets',
  (way) => {
    test('nothing from before its grant, and all from the grant on', async () => {
      const world = await happens(way, [appended('UNSEEN'), onLedger(1), appended('SEEN')]);
      expect(typesTo(world, own)).toEqual(['LEDGER_DELEGATION_GRANTED', 'SEEN']);
      if (way.isWatched) expect(typesTo(world, watching)).toContain('UNSEEN');
    });

    test('of a master nothing from before its grant, of the ledger’s own events neither, and never a sibling’s', async () => {
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
      expect(typesTo(world, own)).toEqual(['MASTER_DELEGATION_GRANTED', 'LEDGER_DELEGATION_GRANTED', 'SEEN']);
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
      expect(typesTo(world, own)).toEqual([granted, 'FIRST', granted, 'SECOND']);
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
      expect(typesTo(world, own)).toEqual([granted, 'FIRST', granted, 'SECOND']);
    });

    test('all of it while one grant replaces another, and a grant of the ledger one of the master', async () => {
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
      const types = typesTo(world, own).filter((type) => !type.includes('DELEGATION'));
      expect(types).toEqual(['A', 'B', 'C', 'D']);
    });
  },
);

test('a delegate of an organization gets its ledger’s events from its grant on', async () => {
  const world = webhookRig();
  const facts = openingFacts('FACILITY_ROOT', { primaryActorId: supplier, organizationId: uuid(0x50) });
  await world.run(openLedger({ facts, registeredPayload: '{}' }), createMaster());
  await world.subscribe(delegate, { url: own });
  await world.run(appended('UNSEEN'), grant({ scope: 'organization', access: 'read' }), appended('SEEN'));
  await world.quiet();
  expect(typesTo(world, own)).toEqual(['SUPPLIER_DELEGATION_GRANTED', 'SEEN']);
});

test('the links of an object are read only for events that a change of the delegate’s grant stands among or behind', async () => {
  const lists: string[] = [];
  const world = await webhookOrder({
    wrapLedgers: (inner) =>
      storeWith(inner, {
        lines: (list, page) => {
          if (list.startsWith('links:')) lists.push(list);
          return inner.lines(list, page);
        },
      }),
  });
  await world.run(onMaster(1));
  await world.clock.advance(60 * second);
  await world.subscribe(delegate, { url: own });
  await world.run(appended('A'), appended('B'));
  await world.quiet();
  expect([typesTo(world, own), lists]).toEqual([['A', 'B'], []]);
  await Promise.all([world.run(appended('C')), world.run(onMaster(2))]);
  await world.quiet();
  expect(new Set(lists)).toEqual(new Set([`links:master:${append().masterId}`]));
  expect(typesTo(world, own)).toEqual(['A', 'B', 'C', 'MASTER_DELEGATION_GRANTED']);
});

test('a subscription that names the ledger gets nothing from before its owner’s newest grant either', async () => {
  const world = await webhookOrder();
  await world.subscribe(buyer, { url: watching });
  await world.run(onMaster(1));
  await world.subscribe(delegate, { url: own, ledgerId });
  await world.run(revoke());
  await world.run(appended('UNSEEN'), onMaster(2), appended('SEEN'));
  await world.quiet();
  expect(typesTo(world, own)).toEqual(['MASTER_DELEGATION_GRANTED', 'SEEN']);
});
