import { describe, expect, test } from 'vitest';
import { keepLog, rotateLogKey, takeNewOrigin } from '../../../../src/service/log-identity/log-changes.ts';
import { openLogIdentity } from '../../../../src/service/log-identity/log-identity.ts';
import { signsOnForS, watchLog } from '../../../../src/service/log-identity/log-watch.ts';
import { ManualClock } from '../../../support/clock.ts';
import { logScene, newSigningKey, newStamp } from '../../../support/log-stores.ts';
import { beforeCalls, startMs } from '../../../support/world.ts';

const origin = 'ledger.example/v1';
const text = Buffer.from(`${origin}/ledgers/0193a000-0000-7000-8000-000000000001\n1\nAA==\n`);

/** A node that watches its log in a store whose reads can be made to fail. */
async function scene() {
  const clock = new ManualClock(startMs);
  const { parts } = await logScene(undefined, 'keyspace 1');
  const logIdentity = await openLogIdentity({ ...parts, origin });
  let isCut = false;
  const records = beforeCalls(parts.records, {
    get: () => {
      if (isCut) throw new Error('cut off');
    },
  });
  const told: string[] = [];
  const watch = watchLog({ records, logIdentity, clock, warn: (what) => told.push(what) });
  await watch.start();
  const signs = () => {
    try {
      return logIdentity.sign(text).length === 64;
    } catch (error) {
      expect(error).toMatchObject({ code: 'unavailable', details: { reason: 'log_behind' } });
      expect(logIdentity.behind.count('store')).toBe(1);
      return false;
    }
  };
  const cut = (value: boolean) => {
    isCut = value;
  };
  return { clock, parts, watch, told, signs, cut };
}

test('a node whose name and key are the store’s signs for as long as it runs', async () => {
  const { clock, signs, told } = await scene();
  for (let minutes = 0; minutes < 5; minutes += 1) {
    expect(signs()).toBe(true);
    await clock.advance(60_000);
  }
  expect(told).toEqual([]);
});

describe('a node that was forgotten signs nothing any more', () => {
  test.each([
    ['new-origin', ({ parts }) => takeNewOrigin(parts, `${origin}-2`, null)],
    ['rotate', ({ parts }) => rotateLogKey(parts, newSigningKey())],
    ['keep in a keyspace with another id', ({ parts }) => keepLog({ ...parts, stamp: newStamp('keyspace 2') })],
  ] satisfies [string, (made: Awaited<ReturnType<typeof scene>>) => Promise<unknown>][])(
    'after %s',
    async (_what, change) => {
      const made = await scene();
      await change(made);
      await made.clock.advance(signsOnForS * 1_000);
      expect(made.signs()).toBe(false);
      await made.clock.advance(60_000);
      expect(made.told).toEqual([expect.stringMatching(/signs no checkpoint any more: stop it/)]);
    },
  );
});

test('a node that cannot read the record signs until its trust ends, and again once it can', async () => {
  const { clock, signs, cut, told } = await scene();
  cut(true);
  await clock.advance(signsOnForS * 500);
  expect(signs()).toBe(true);
  await clock.advance(signsOnForS * 1_000);
  expect(signs()).toBe(false);
  expect(told).toEqual([expect.stringContaining('failed')]);
  cut(false);
  await clock.advance(1_000);
  expect(signs()).toBe(true);
});

test('a node that was stopped looks no more', async () => {
  const { clock, watch, signs } = await scene();
  watch.stop();
  await clock.advance(signsOnForS * 2_000);
  expect(signs()).toBe(false);
});
