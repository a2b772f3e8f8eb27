import { expect, test } from 'vitest';
import { BehindLogs } from '../../../../src/service/log-identity/behind-logs.ts';

test('a log is behind from when it was found behind until it is found to be right', () => {
  const behind = new BehindLogs(false);
  expect(behind.isEmpty).toBe(true);
  behind.learn('ledger', 'a/ledgers/1', true);
  behind.learn('ledger', 'a/ledgers/1', true);
  behind.learn('master', 'a/masters/1', true);
  expect([behind.count('store'), behind.count('ledger'), behind.count('master')]).toEqual([0, 1, 1]);
  expect([behind.has('ledger', 'a/ledgers/1'), behind.has('ledger', 'a/ledgers/2')]).toEqual([true, false]);
  behind.learn('ledger', 'a/ledgers/1', false);
  expect([behind.isEmpty, behind.count('ledger')]).toEqual([false, 0]);
  behind.learn('master', 'a/masters/1', false);
  expect(behind.isEmpty).toBe(true);
});

test('every log of a store that is behind is behind', () => {
  const behind = new BehindLogs(true);
  expect(behind.isEmpty).toBe(false);
  expect(behind.count('store')).toBe(1);
  expect([behind.has('ledger', 'a/ledgers/1'), behind.has('master', 'a/masters/1')]).toEqual([true, true]);
});
