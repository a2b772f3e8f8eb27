import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createRedis } from '../../../cluster/redis/client.ts';
import { formatApiKey } from '../../../src/domain/keys/api-key.ts';
import { webhookSecret } from '../../../src/domain/keys/webhook-signature.ts';
import { createLog } from '../../../src/runtime/telemetry/log.ts';
import { redaction, secretsIn } from '../../../src/runtime/telemetry/redaction.ts';
import { testDir } from '../../support/running-node.ts';

const random = Buffer.alloc(32, 7);
const apiKey = formatApiKey({ environment: 'sandbox', region: null, random });
const liveKey = formatApiKey({ environment: 'production', region: 'eu', random });
const pem =
  '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzNCIn/KNtmncbbNGwRTgtaj3FpNauQ\n-----END PRIVATE KEY-----\n';

describe('a text', () => {
  const redact = redaction();

  test.each([
    ['the login of a URL', 'redis://user:pa55word@redis:6379/0', 'redis://[redacted]@redis:6379/0'],
    ['a password without a user', 'rediss://:pa55word@redis', 'rediss://[redacted]@redis'],
    ['an API key', `key ${apiKey}.`, 'key [redacted].'],
    ['a production key', `key ${liveKey}.`, 'key [redacted].'],
    ['the secret of a subscription', `secret ${webhookSecret(random)}`, 'secret [redacted]'],
    ['a bearer token', 'authorization: Bearer abcdefgh12345', 'authorization: Bearer [redacted]'],
  ])('loses %s', (_, text, expected) => {
    expect(redact(text)).toBe(expected);
  });

  test('loses a private key in PEM, also in JSON', () => {
    for (const text of [pem, JSON.stringify({ pem })]) {
      expect(redact(text)).not.toContain('MC4CAQAwBQYDK2VwBCIEIEzNCIn');
      expect(redact(text)).toContain('BEGIN PRIVATE KEY');
    }
  });

  test('keeps text without secrets', () => {
    const text = `{"level":"info","route":"/v1/webhooks","url":"https://a.example/x?y=@z","id":"01890a5d-ac96-774b-bcce-b302099a8057"}`;
    expect(redact(text)).toBe(text);
  });

  test('loses given secrets as text, in JSON and in a URL', () => {
    const secret = 'p"a\\s $&+(x)/é';
    const hide = redaction([secret, 'abc']);
    for (const text of [secret, JSON.stringify({ secret }), `redis://r/${encodeURIComponent(secret)}`])
      expect(hide(`<${text}>`)).toContain('[redacted]');
    expect(hide(JSON.stringify({ a: secret, b: 'abc' }))).toBe('{"a":"[redacted]","b":"abc"}');
  });

  test('of a megabyte is searched within two seconds', () => {
    const began = performance.now();
    for (const part of ['://', '://:', 'Bearer ', '-----BEGIN ', 'svc_sk_test_'])
      redact(part.repeat(1_000_000 / part.length));
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

test('the secrets of an environment are in variables, in URLs and in named files', () => {
  const dir = testDir();
  const file = (name: string, text: string) => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const env = {
    REDIS_URL: 'redis://u:pa%2Fss@redis:6379',
    CLUSTER_SECRET: 'of the cluster',
    CLUSTER_SECRET_FILE: file('cluster', 'of the file\n'),
    CASSANDRA_PASSWORD_FILE: file('cassandra', 'of cassandra\n'),
    SECRETS_KEY_FILE: file('secrets', 'AAAA\n'),
    SVC_API_KEY: 'of a caller',
    TLS_CERT_FILE: file('cert', 'public'),
    PORT: '8080',
    GONE_PASSWORD_FILE: join(dir, 'gone'),
  };
  const expected = ['pa%2Fss', 'pa/ss', 'of the cluster', 'of the file', 'of cassandra', 'AAAA', 'of a caller'];
  expect(secretsIn(env).sort()).toEqual(expected.sort());
});

test('no log line of any level contains a secret in its message, fields or error', () => {
  const lines: string[] = [];
  const secret = 'the-cluster-secret';
  const log = createLog('debug', { write: (line) => void lines.push(line) }, redaction([secret]));
  const url = `redis://:${secret}-2@redis`;
  const error = Object.assign(new Error(`AUTH ${secret}`), { command: { name: 'auth', args: [secret] }, apiKey });
  for (const level of ['debug', 'info', 'warn', 'error'] as const)
    log[level]({ err: error, config: { peers: { secret }, url, pem } }, `with ${secret}`);
  expect(lines).toHaveLength(4);
  for (const line of lines) {
    for (const hidden of [secret, apiKey, 'MC4CAQAwBQYDK2VwBCIEIEzNCIn']) expect(line).not.toContain(hidden);
    expect(JSON.parse(line).msg).toBe('with [redacted]');
  }
});

test('a refused login at Redis is reported without its password', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () =>
      socket.write('-WRONGPASS invalid username-password pair or user is disabled.\r\n'.repeat(4)),
    );
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const told: Error[] = [];
  const redis = createRedis(`redis://:abc@127.0.0.1:${port}`, (error) => void told.push(error));
  await redis.connect().catch(() => {});
  redis.disconnect();
  expect(told.length).toBeGreaterThan(0);
  const texts = told.map((error) => `${error.stack} ${JSON.stringify(error, Object.getOwnPropertyNames(error))}`);
  expect(texts.join()).toContain('WRONGPASS');
  for (const text of texts) expect(text).not.toContain('abc');
});
