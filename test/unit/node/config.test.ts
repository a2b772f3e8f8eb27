import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/node/config.ts';
import { nodeSettings } from '../../../src/node/settings.ts';
import { ConfigError } from '../../../src/runtime/start-error.ts';
import { suiteDir } from '../../support/running-node.ts';

const safe = {
  SVC_MODE: 'production',
  AUTHORITY_KEY_FILE: 'a.pem',
  SECRETS_KEY_FILE: 's.key',
  LOG_ORIGIN: 'ledger.example/v1',
  LOG_KEY_FILE: 'l.pem',
  TLS_TERMINATED: '1',
};
const folder = suiteDir();
const refusal = (env: Record<string, string>): string => {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error('The configuration was taken');
};

describe('configuration', () => {
  it('an empty environment is development mode with the documented defaults and no rate limits', () => {
    const config = readConfig({});
    expect(config).toMatchObject({
      mode: 'development',
      port: 8080,
      grpcPort: 50051,
      opsPort: 9100,
      opsHost: '127.0.0.1',
      dataDir: './data',
      tls: null,
    });
    expect(Object.values(config.rateLimits).map(({ perSecond }) => perSecond)).toEqual([0, 0, 0]);
    expect(Object.isFrozen(config)).toBe(true);
  });

  it('production mode has the rate limits of the contract', () => {
    expect(readConfig(safe).rateLimits).toEqual({
      create: { perSecond: 10, burst: 300 },
      call: { perSecond: 200, burst: 500 },
      append: { perSecond: 5000, burst: 5000 },
    });
  });

  it('as many long reads run at once as the memory budget has room for', () => {
    const reads = (MEMORY_BUDGET_MIB: string) => readConfig({ MEMORY_BUDGET_MIB }).reads;
    expect(reads('1024')).toEqual({ total: 16, perCaller: 4, waiting: 1_000 });
    expect([reads('64').total, reads('32').total]).toEqual([4, 2]);
    const set = { READS_AT_ONCE: '7', READS_AT_ONCE_PER_CALLER: '3', READS_WAITING: '50' };
    expect(readConfig(set).reads).toEqual({ total: 7, perCaller: 3, waiting: 50 });
    expect(refusal({ READS_WAITING: '0' })).toBe(
      'Set READS_WAITING to a whole number from 1 to 1000000: with 0 every call, or a large one, would be refused.',
    );
  });

  it('a public port has a connection for each 16 KiB of the memory budget', () => {
    const connections = (MEMORY_BUDGET_MIB: string) => readConfig({ MEMORY_BUDGET_MIB }).connectionsMax;
    expect([connections('1024'), connections('64')]).toEqual([20_000, 4_096]);
    expect(readConfig({ CONNECTIONS_MAX: '7' }).connectionsMax).toBe(7);
  });

  it('a node knows a webhook subscription for each 16 KiB of the memory budget', () => {
    const subscriptions = (MEMORY_BUDGET_MIB: string) => readConfig({ MEMORY_BUDGET_MIB }).subscriptionsMax;
    expect([subscriptions('256'), subscriptions('64')]).toEqual([16_384, 4_096]);
    expect(readConfig({ SUBSCRIPTIONS_MAX: '7' }).subscriptionsMax).toBe(7);
  });

  it('streams that follow leave connections of a public port to others', () => {
    const followers = (set: { readonly [name: string]: string }) => readConfig(set).followers.total;
    expect([followers({ MEMORY_BUDGET_MIB: '256' }), followers({ MEMORY_BUDGET_MIB: '64' })]).toEqual([10_000, 2_560]);
    expect(followers({ CONNECTIONS_MAX: '7', FOLLOWERS_MAX: '9' })).toBe(9);
  });

  it('bounds of a gRPC connection have defaults, and are set in MiB', () => {
    const mebibyte = 1024 * 1024;
    const bounds = { connectionRequestBytes: 8 * mebibyte, connectionAnswerBytes: 32 * mebibyte };
    expect(readConfig({}).grpcBounds).toEqual(bounds);
    const set = { GRPC_CONNECTION_REQUEST_MIB: '16', GRPC_CONNECTION_ANSWER_MIB: '64' };
    expect(readConfig(set).grpcBounds).toEqual({
      connectionRequestBytes: 16 * mebibyte,
      connectionAnswerBytes: 64 * mebibyte,
    });
    expect(refusal({ GRPC_CONNECTION_REQUEST_MIB: '1' })).toBe(
      'Set GRPC_CONNECTION_REQUEST_MIB to at least 2: the largest call needs as much.',
    );
    expect(refusal({ GRPC_CONNECTION_ANSWER_MIB: '7' })).toContain('at least 8');
  });

  it('production mode lists all that is missing in one sentence', () => {
    const message = refusal({ SVC_MODE: 'production' });
    for (const name of [
      'AUTHORITY_KEY_FILE',
      'SECRETS_KEY_FILE',
      'LOG_ORIGIN',
      'LOG_KEY_FILE',
      'TLS_CERT_FILE',
      'TLS_KEY_FILE',
      'TLS_TERMINATED=1',
    ])
      expect(message).toContain(name);
    expect(message.match(/\.( |$)/g)).toHaveLength(1);
  });

  it.each(['0.0.0.0', '::', '10.0.0.7', '203.0.113.7', 'ops.example', '::ffff:10.0.0.7'])(
    'production mode refuses an internal port on %s, which others reach',
    (OPS_HOST) => {
      expect(refusal({ ...safe, OPS_HOST })).toBe(
        'For SVC_MODE=production also set OPS_HOST to a loopback address: the internal port is never public.',
      );
      expect(readConfig({ OPS_HOST }).opsHost).toBe(OPS_HOST);
    },
  );

  it.each(['localhost', '127.0.0.9', '::1'])('production mode takes an internal port on %s', (OPS_HOST) => {
    expect(readConfig({ ...safe, OPS_HOST }).opsHost).toBe(OPS_HOST);
  });

  it('production mode refuses calls from the pages of every site, and takes sites by name', () => {
    expect(refusal({ ...safe, CORS_ORIGINS: '*' })).toContain('CORS_ORIGINS');
    const CORS_ORIGINS = 'https://app.example.com';
    expect(readConfig({ ...safe, CORS_ORIGINS }).corsOrigins).toEqual([CORS_ORIGINS]);
    expect(readConfig({ CORS_ORIGINS: '*' }).corsOrigins).toEqual(['*']);
  });

  describe.each(['AUTHORITY_KEY_FILE', 'SECRETS_KEY_FILE', 'LOG_KEY_FILE', 'TLS_KEY_FILE'])('%s', (name) => {
    const file = join(folder, name);
    const env = { ...safe, TLS_CERT_FILE: 'c.pem', TLS_KEY_FILE: 'k.pem', [name]: file };
    const take = (mode: number) => {
      writeFileSync(file, '');
      chmodSync(file, mode);
      return env;
    };

    it.each([0o644, 0o604, 0o602, 0o620, 0o660])(
      'of mode %o is refused in production mode, with what mends it',
      (mode) => {
        expect(refusal(take(mode))).toBe(
          `For SVC_MODE=production also close ${name} to other users (chmod 600 ${file}).`,
        );
        expect(readConfig({ ...take(mode), SVC_MODE: 'development' }).mode).toBe('development');
      },
    );

    it.each([0o600, 0o400, 0o440, 0o640])('of mode %o is taken', (mode) => {
      expect(readConfig(take(mode)).mode).toBe('production');
    });
  });

  it('a certificate without its key, two equal ports and a limit without burst are refused', () => {
    expect(refusal({ TLS_CERT_FILE: 'c.pem' })).toContain('TLS_KEY_FILE');
    expect(refusal({ PORT: '9100' })).toContain('OPS_PORT');
    expect(refusal({ RATE_LIMIT_CALL_PER_SECOND: '5', RATE_LIMIT_CALL_BURST: '0' })).toContain('RATE_LIMIT_CALL_BURST');
  });

  it('an empty variable counts as not set, and port 0 may come twice', () => {
    expect(readConfig({ PORT: '', SVC_MODE: ' ' })).toMatchObject({ port: 8080, mode: 'development' });
    expect(readConfig({ PORT: '0', GRPC_PORT: '0' })).toMatchObject({ port: 0, grpcPort: 0 });
  });

  it('every variable that is read stands in the table, once', () => {
    const read = new Set<string>();
    const env = new Proxy({}, { get: (_, name) => void read.add(String(name)) });
    readConfig(env);
    expect([...read].sort()).toEqual(
      Object.values(nodeSettings)
        .map(({ name }) => name)
        .sort(),
    );
  });
});
