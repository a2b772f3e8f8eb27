import { expect, test } from 'vitest';
import { ownCertificate } from '../../../support/certificate.ts';
import { fuzzHttp1 } from '../../../support/fuzz-http1-run.ts';

test('the HTTP port answers any bytes with an envelope or ends the connection, and still serves', async () => {
  expect(await fuzzHttp1({ forMs: 2_000, atOnce: 8 })).toEqual([]);
});

test('the HTTP port with TLS answers any bytes in it with an envelope or ends the connection, and still serves', async () => {
  expect(await fuzzHttp1({ forMs: 1_500, atOnce: 8, tls: ownCertificate() })).toEqual([]);
});
