import { expect, test } from 'vitest';
import { missedAims } from '../../../bench/aims.ts';

test('aims that were missed are found wherever they stand in a result', () => {
  const result = {
    runs: [{ reached: true }, { throughput: { reached: false }, nodesCpu: { reached: true } }],
    memory: { rssAnonMib: 400, reached: false },
    verification: null,
  };
  expect(missedAims(result)).toEqual(['runs.1.throughput', 'memory']);
  expect(missedAims({ runs: [{ reached: true }] })).toEqual([]);
});
