import { expect, test } from 'vitest';
import { append, createMaster, openLedger, supplier } from '../../support/commands.ts';
import { answer, type Receiver, silent, webhookRig } from '../../support/webhook-rig.ts';

const events = 60;
const healthy = Array.from({ length: 17 }, (_, at) => `https://healthy-${at}.example/`);
const refusing = 'https://refusing.example/';
const dead = 'https://silent.example/';
const slow = 'https://slow.example/';

test('17 healthy receivers get all events in order, and 2 dead ones and a slow one by the schedule', async () => {
  const world = webhookRig();
  await world.run(openLedger(), createMaster());
  const takesFiveSeconds: Receiver = () =>
    new Promise((resolve) => void world.clock.after(5_000, () => resolve(answer(200))));
  world.receivers.set(refusing, () => ({ kind: 'failed', fault: 'not_reached' }));
  world.receivers.set(dead, silent);
  world.receivers.set(slow, takesFiveSeconds);
  const ids = new Map<string, string>();
  for (const url of [refusing, dead, slow, ...healthy]) ids.set(url, (await world.subscribe(supplier, { url })).id);
  const statuses = async (url: string) => {
    const { deliveries } = await world.deliveries(supplier, ids.get(url) ?? '');
    expect(deliveries).toHaveLength(events);
    return deliveries.map(({ status, attempt }) => `${status} ${attempt}`);
  };
  const all = (text: string) => Array<string>(events).fill(text);

  await Promise.all(Array.from({ length: events }, () => world.run(append())));
  await world.quiet();
  // The clock has not moved.
  for (const url of healthy) {
    const seqs = world.posts.filter((post) => post.url === url).map(({ event }) => event.seq);
    expect(seqs).toEqual(Array.from({ length: events }, (_, at) => at + 3));
    expect(await statuses(url)).toEqual(all('DELIVERED 0'));
  }
  expect(await statuses(refusing)).toEqual(all('PENDING 0'));
  expect(world.webhooks.held).toBeLessThanOrEqual(2 * 32);
  const bodies = new Set(world.posts.map(({ raw }) => raw.toString()));
  const bodyBytes = [...bodies].reduce((sum, body) => sum + Math.ceil(Buffer.byteLength(body) / 64) * 64, 0);
  expect(world.memory.heldBytes('queue')).toBe(world.webhooks.held * 1_024 + bodyBytes);

  await world.advance(60_050);
  // Twelve answers of five seconds in a minute, one after another, and the time that records may wait. Refused
  // deliveries were tried twice.
  expect((await statuses(slow)).filter((status) => status === 'DELIVERED 0')).toHaveLength(12);
  expect(await statuses(refusing)).toEqual(all('PENDING 1'));

  await world.advance(2 * 60 * 60_000 + 40 * 60_000);
  expect(await statuses(slow)).toEqual(all('DELIVERED 0'));
  expect(await statuses(refusing)).toEqual(all('FAILED 4'));
  expect((await statuses(dead)).every((status) => status.startsWith('PENDING'))).toBe(true);

  for (let hour = 0; hour < 4; hour++) {
    await world.advance(60 * 60_000);
  }
  expect(await statuses(dead)).toEqual(all('FAILED 4'));
  expect(world.posts.filter(({ url }) => url === dead)).toHaveLength(5 * events);
  expect(world.webhooks.held).toBe(0);
  // The bodies are kept for further deliveries.
  expect(world.memory.heldBytes('queue')).toBe(bodyBytes);
});
