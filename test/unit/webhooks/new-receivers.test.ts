import { describe, expect, test } from 'vitest';
import { append, buyer, createMaster, openLedger, supplier, uuid } from '../../support/commands.ts';
import { isNightly } from '../../support/nightly.ts';
import { second } from '../../support/webhook-order.ts';
import { silent, type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';

/** 40 receivers of one tenant that never answer. Each has enough waiting deliveries for all slots of a target. */
async function fortyDead(): Promise<{ world: WebhookRig; ledgers: readonly { ledgerId: string; masterId: string }[] }> {
  const world = webhookRig();
  const ledgers = Array.from({ length: 5 }, (_, at) => ({ ledgerId: uuid(100 + at), masterId: uuid(200 + at) }));
  for (const ids of ledgers) await world.run(openLedger({ ledgerId: ids.ledgerId }), createMaster(ids));
  for (let at = 0; at < 40; at++) {
    const url = `https://dead-${at}.example/`;
    world.receivers.set(url, silent);
    await world.subscribe(supplier, { url });
  }
  for (const ids of ledgers) await world.run(append(ids));
  await world.quiet();
  return { world, ledgers };
}

describe.each([
  ['another tenant', buyer],
  ['the same tenant', supplier],
])('beside 40 dead receivers of one tenant, the first delivery to a new receiver of %s', (_name, owner) => {
  test.each(isNightly ? [0, 0.5, 1, 3, 9.5, 10, 12, 25, 60, 300] : [0, 1, 10, 60])(
    'begins within a second, %d s after they began',
    async (afterSeconds) => {
      const { world, ledgers } = await fortyDead();
      await world.advance(afterSeconds * second);
      const url = 'https://new.example/';
      await world.subscribe(owner, { url });
      const since = world.clock.now();
      for (const ids of ledgers) await world.run(append(ids));
      await world.quiet();
      await world.advance(second);
      const [first] = world.posts.filter((post) => post.url === url);
      expect((first?.atMs ?? Number.POSITIVE_INFINITY) - since).toBeLessThanOrEqual(second);
      // Its answer shows that it is quick, so the others are sent at once.
      expect(world.posts.filter((post) => post.url === url)).toHaveLength(ledgers.length);
    },
  );
});
