import { expect, test } from 'vitest';
import { fuzzHttp1 } from '../../../support/fuzz-http1-run.ts';

test('whatever bytes come, the HTTP port answers in its own words or ends the connection, and goes on to serve', async () => {
  expect(await fuzzHttp1({ seed: Math.floor(Math.random() * 2 ** 31), forMs: 2_000, atOnce: 8 })).toEqual([]);
});
