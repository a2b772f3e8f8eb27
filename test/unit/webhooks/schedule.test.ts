import { describe, expect, test } from 'vitest';
import { append } from '../../support/commands.ts';
import { hookUrl, hour, minute, onlyDelivery, second, subscribedOrder } from '../../support/webhook-order.ts';
import { answer, broken, type Receiver, silent } from '../../support/webhook-rig.ts';

describe('the schedule', () => {
  test('now, 30 s, 5 min, 30 min, 2 h, then FAILED; attempt counts the retries', async () => {
    const { world, id, base } = await subscribedOrder(() => answer(503));
    await world.run(append());
    const seen: unknown[] = [];
    for (const wait of [0, 30 * second, 5 * minute, 30 * minute, 2 * hour]) {
      await world.advance(wait);
      const { status, attempt, nextAttemptAt, lastError } = (await onlyDelivery(world, id)) ?? {};
      const next = nextAttemptAt === undefined ? null : Date.parse(nextAttemptAt) - world.clock.now();
      seen.push([status, attempt, next, lastError]);
    }
    expect(seen).toEqual([
      ['PENDING', 0, 30 * second, 'The receiver answered 503.'],
      ['PENDING', 1, 5 * minute, 'The receiver answered 503.'],
      ['PENDING', 2, 30 * minute, 'The receiver answered 503.'],
      ['PENDING', 3, 2 * hour, 'The receiver answered 503.'],
      ['FAILED', 4, null, 'The receiver answered 503.'],
    ]);
    expect(world.posts.map(({ atMs }) => atMs - base)).toEqual([
      0,
      30 * second,
      30 * second + 5 * minute,
      35 * minute + 30 * second,
      2 * hour + 35 * minute + 30 * second,
    ]);
    await world.advance(24 * hour);
    expect(world.posts).toHaveLength(5);
  });

  test('a millisecond before its time a retry is not sent', async () => {
    const { world } = await subscribedOrder(() => answer(500));
    await world.runToEnd(append());
    await world.advance(30 * second - 1);
    expect(world.posts).toHaveLength(1);
    await world.advance(1);
    expect(world.posts).toHaveLength(2);
  });

  test('it continues after a restart, with overdue attempts at once', async () => {
    const { world, id } = await subscribedOrder(() => answer(500));
    await world.runToEnd(append());
    world.kill();
    await world.clock.advance(hour);
    const next = world.restarted();
    next.receivers.set(hookUrl, () => answer(500));
    next.webhooks.start();
    await next.quiet();
    expect(next.posts).toHaveLength(1);
    expect(await onlyDelivery(next, id)).toMatchObject({ status: 'PENDING', attempt: 1 });
    await next.advance(5 * minute);
    expect(next.posts).toHaveLength(2);
  });

  test.each([
    ['a redirect', () => answer(302), 302, 'The receiver answered 302; redirects are not followed.'],
    ['not modified', () => answer(304), 304, 'The receiver answered 304; redirects are not followed.'],
    ['a 4xx', () => answer(404), 404, 'The receiver answered 404.'],
    ['a broken connection', () => broken, undefined, 'The connection broke off before the receiver had answered.'],
  ] satisfies [string, Receiver, number | undefined, string][])('%s fails', async (_name, receiver, status, error) => {
    const { world, id } = await subscribedOrder(receiver);
    await world.runToEnd(append());
    expect(await onlyDelivery(world, id)).toMatchObject({ status: 'PENDING', lastError: error });
    expect((await onlyDelivery(world, id))?.lastResponseStatus).toBe(status);
  });

  test.each([200, 201, 204, 299])('%i is success', async (status) => {
    const { world, id } = await subscribedOrder(() => answer(status));
    await world.runToEnd(append());
    expect(await onlyDelivery(world, id)).toMatchObject({ status: 'DELIVERED', lastResponseStatus: status });
  });

  test('no answer within 10 s is a failed attempt', async () => {
    const { world, id } = await subscribedOrder(silent);
    await world.runToEnd(append());
    await world.clock.advance(10 * second - 1);
    expect((await onlyDelivery(world, id))?.lastError).toBeUndefined();
    await world.advance(1);
    expect(await onlyDelivery(world, id)).toMatchObject({
      status: 'PENDING',
      lastError: 'The receiver did not answer within 10 seconds.',
    });
  });
});
