import { expect, test } from 'vitest';
import { ownCertificate } from '../../../support/certificate.ts';
import { fuzzHttp1 } from '../../../support/fuzz-http1-run.ts';

test('five minutes of bytes of all kinds leave the HTTP port serving and without connections', async () => {
  expect(await fuzzHttp1({ forMs: 300_000, atOnce: 16 })).toEqual([]);
}, 400_000);

test('a minute of bytes of all kinds in TLS leaves the HTTP port serving and without connections', async () => {
  expect(await fuzzHttp1({ forMs: 60_000, atOnce: 16, tls: ownCertificate() })).toEqual([]);
}, 160_000);
