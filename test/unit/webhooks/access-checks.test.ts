import { expect, test } from 'vitest';
import { names } from '../../../src/domain/event/projection.ts';
import { createMaster, delegate, grant, ledgerId, revoke, stranger, uuid } from '../../support/commands.ts';
import { webhookOrder } from '../../support/webhook-order.ts';
import { type WebhookRigOptions, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls } from '../../support/world.ts';

const [masterCount, subscriptionCount, eventCount] = [100, 20, 4];
const granted = 'LEDGER_DELEGATION_GRANTED';
const ofDelegate = names.masterLinksOf(ledgerId, delegate);
const grantsOfMasters = names.grant('master', '', '').slice(0, -1);

/** The subscriptions of a delegate, which has lost all of its masters but the oldest, and the events for them. */
async function delegateOfMany(options: WebhookRigOptions = {}) {
  const first = await webhookOrder();
  for (let at = 0; at < masterCount; at++) {
    const masterId = uuid(0x2000 + at);
    await first.run(createMaster({ masterId }), grant({ access: 'read', masterId, linkId: uuid(0x3000 + at) }));
    if (at > 0) await first.run(revoke({ masterId }));
  }
  for (let at = 0; at < subscriptionCount; at++)
    await first.subscribe(delegate, { url: `https://hook.example/${at}`, eventTypes: [granted] });
  await first.quiet();
  first.kill();
  /** When a page of masters was read for a delivery, and when grants were checked. */
  const [pages, checks]: [number[], number[]] = [[], []];
  const world = webhookRig({
    rig: first.rig,
    records: first.records,
    secretsKey: first.secretsKey,
    wrapLedgers: (inner) =>
      beforeCalls(inner, {
        lines: (list, { limit }) => void (limit === 32 && list === ofDelegate && pages.push(first.clock.now())),
        cell: (key) => void (key.startsWith(grantsOfMasters) && checks.push(first.clock.now())),
      }),
    ...options,
  });
  await world.quiet();
  const happen = async (count: number) => {
    for (let at = 0; at < count; at++)
      await world.run(
        grant({ scope: 'ledger', role: 'AUDITOR', delegateActorId: stranger, linkId: uuid(0x5000 + at), ledgerId }),
      );
    for (let calm = 0; calm < 10; calm++) await world.quiet();
  };
  return { world, happen, pages, checks };
}

test('the masters of a delegate are searched once, not for each of its deliveries', async () => {
  const { world, happen, checks } = await delegateOfMany();
  await happen(eventCount);
  expect(world.posts).toHaveLength(subscriptionCount * eventCount);
  expect(checks).toHaveLength(masterCount);
});

test('the masters of a delegate that has lost the last one are searched once for its deliveries', async () => {
  const { world, happen, checks } = await delegateOfMany();
  const auditor = { scope: 'ledger', role: 'AUDITOR', delegateActorId: stranger } as const;
  await Promise.all([
    world.run(grant({ ...auditor, linkId: uuid(0x7000), ledgerId })),
    world.run(revoke({ masterId: uuid(0x2000) })),
  ]);
  await happen(0);
  expect(world.outcomes.map(({ kind }) => kind)).toEqual(Array(subscriptionCount).fill('dropped'));
  expect(checks).toHaveLength(masterCount);
});

test('the masters of a delegate are searched in the time that webhooks have', async () => {
  let utilization = 0;
  const { world, happen, pages, checks } = await delegateOfMany({ utilization: () => utilization });
  utilization = 1;
  await world.run(...Array.from({ length: 100 }, (_, at) => createMaster({ masterId: uuid(0x6000 + at) })));
  await world.advance(100);
  await happen(1);
  for (let at = 0; at < 60; at++) await world.advance(100);
  expect(world.posts).toHaveLength(subscriptionCount);
  const [firstPage = Number.POSITIVE_INFINITY] = pages;
  expect(checks[0]).toBeGreaterThan(firstPage);
});
