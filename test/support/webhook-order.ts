import { expect } from 'vitest';
import { createMaster, openLedger, supplier } from './commands.ts';
import { type Receiver, type WebhookRig, type WebhookRigOptions, webhookRig } from './webhook-rig.ts';

/** The URL of the subscription of `subscribedOrder`, and the default of `subscribe`. */
export const hookUrl = 'https://hooks.example/a';

/** Milliseconds. */
export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;

/** Webhooks over one order with a master in it: events appended by a test begin at seq 3. */
export async function webhookOrder(options: WebhookRigOptions = {}): Promise<WebhookRig> {
  const world = webhookRig(options);
  await world.run(openLedger(), createMaster());
  return world;
}

/** The same with one subscription of the supplier, and its receiver. `base` is the time at which it began. */
export async function subscribedOrder(
  receiver: Receiver,
): Promise<{ world: WebhookRig; id: string; secret: string; base: number }> {
  const world = await webhookOrder();
  world.receivers.set(hookUrl, receiver);
  const { id, secret } = await world.subscribe(supplier, { url: hookUrl });
  return { world, id, secret, base: world.clock.now() };
}

/** The delivery of a subscription of the supplier that has had one event. */
export async function onlyDelivery(world: WebhookRig, id: string) {
  const { deliveries } = await world.deliveries(supplier, id);
  expect(deliveries).toHaveLength(1);
  return deliveries[0];
}
