import { expect, test } from 'vitest';
import { SignedLog } from '../../../../src/service/proofs/signed-log.ts';
import { ledgerLog } from '../../../support/proofs-rig.ts';

const root = Buffer.alloc(32, 7);

/** A log whose raises end when the test says so. */
function raisedByHand() {
  const raises: { readonly size: number; readonly end: PromiseWithResolvers<void> }[] = [];
  const log = new SignedLog(
    { ...ledgerLog, origin: 'ledger.example/v1/ledgers/one' },
    {
      get: async () => null,
      raise: (_origin, size) => {
        const end = Promise.withResolvers<void>();
        raises.push({ size, end });
        return end.promise;
      },
    },
  );
  return { log, raises };
}

test('calls that come during a raise share the next one, which takes the largest of their heads', async () => {
  const { log, raises } = raisedByHand();
  log.keepSigned(await log.readSigned(), log.epoch);
  const done: number[] = [];
  const calls = [10, 20, 30, 25, 5].map((size) => log.raise({ size, root }, log.epoch).then(() => done.push(size)));
  expect(raises.map(({ size }) => size)).toEqual([10]);
  raises[0]?.end.resolve();
  await new Promise(setImmediate);
  expect(raises.map(({ size }) => size)).toEqual([10, 30]);
  expect(done.toSorted((a, b) => a - b)).toEqual([5, 10]);
  raises[1]?.end.resolve();
  await Promise.all(calls);
  expect(raises).toHaveLength(2);
  expect(log.signed?.size).toBe(30);
});

test('a raise that failed leaves the signed head unknown', async () => {
  const { log, raises } = raisedByHand();
  log.keepSigned(await log.readSigned(), log.epoch);
  const call = log.raise({ size: 10, root }, log.epoch);
  raises[0]?.end.reject(new Error('no'));
  await expect(call).rejects.toThrow('no');
  expect(log.signed).toBeUndefined();
});

test('a raise that fails refuses the calls that wait for the next one, and their heads are not raised later', async () => {
  const { log, raises } = raisedByHand();
  log.keepSigned(await log.readSigned(), log.epoch);
  const calls = [10, 20].map((size) => log.raise({ size, root }, log.epoch));
  raises[0]?.end.reject(new Error('no'));
  const outcomes = await Promise.allSettled(calls);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const later = log.raise({ size: 15, root }, log.epoch);
  expect(raises.map(({ size }) => size)).toEqual([10, 15]);
  raises[1]?.end.resolve();
  await later;
});

test('a raise ends although the log was found to be behind just when its head became durable', async () => {
  const { log, raises } = raisedByHand();
  log.keepSigned(await log.readSigned(), log.epoch);
  let ended = false;
  const call = log.raise({ size: 10, root }, log.epoch).then(() => {
    ended = true;
  });
  raises[0]?.end.resolve();
  // The head is kept a few microtasks later. Each of them may be followed by what another call finds.
  for (let count = 0; count < 20 && !ended; count++) {
    await Promise.resolve();
    if (log.signed !== null && count < 10) log.forget();
  }
  raises[1]?.end.resolve();
  await call;
  expect(ended).toBe(true);
});

test('a head that was compared before the signed head was forgotten is not raised, also by a later call', async () => {
  const { log, raises } = raisedByHand();
  log.keepSigned(await log.readSigned(), log.epoch);
  const before = log.epoch;
  const under = log.raise({ size: 10, root }, before);
  const waiting = log.raise({ size: 30, root }, before);
  log.forget();
  const later = log.raise({ size: 20, root }, log.epoch);
  raises[0]?.end.resolve();
  expect(await Promise.all([under, waiting])).toEqual([false, false]);
  expect(raises.map(({ size }) => size)).toEqual([10, 20]);
  raises[1]?.end.resolve();
  expect(await later).toBe(true);
  expect(await log.raise({ size: 15, root }, before)).toBe(false);
  expect(log.signed?.size).toBe(20);
});

test('a raise that ends after the signed head was forgotten does not make it known', async () => {
  const { log, raises } = raisedByHand();
  log.keepSigned(await log.readSigned(), log.epoch);
  const call = log.raise({ size: 10, root }, log.epoch);
  log.forget();
  raises[0]?.end.resolve();
  expect(await call).toBe(false);
  expect([log.signed, log.raised]).toEqual([undefined, null]);
});
