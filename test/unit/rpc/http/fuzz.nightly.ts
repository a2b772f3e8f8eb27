import { expect, test } from 'vitest';
import { fuzzHttp1 } from '../../../support/fuzz-http1-run.ts';

test('five minutes of bytes of all kinds leave the HTTP port serving and without connections', async () => {
  expect(await fuzzHttp1({ forMs: 300_000, atOnce: 16 })).toEqual([]);
}, 400_000);
