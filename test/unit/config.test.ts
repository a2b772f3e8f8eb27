import { describe, expect, it } from 'vitest';
import { ConfigError, readConfig } from '../../src/config.ts';
import { configTable } from '../../src/config-table.ts';

const safe = { SVC_MODE: 'production', AUTHORITY_KEY_FILE: 'a.pem', SECRETS_KEY_FILE: 's.key', TLS_TERMINATED: '1' };
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

  it('production mode lists all that is missing in one sentence', () => {
    const message = refusal({ SVC_MODE: 'production' });
    for (const name of ['AUTHORITY_KEY_FILE', 'SECRETS_KEY_FILE', 'TLS_CERT_FILE', 'TLS_KEY_FILE', 'TLS_TERMINATED=1'])
      expect(message).toContain(name);
    expect(message.match(/\.( |$)/g)).toHaveLength(1);
  });

  it.each([
    ['SVC_MODE', 'prod'],
    ['PORT', '-1'],
    ['PORT', '80a'],
    ['GRPC_PORT', '65536'],
    ['OPS_PORT', '1e3'],
    ['LOG_LEVEL', 'loud'],
    ['TLS_TERMINATED', 'yes'],
    ['CORS_ORIGINS', 'app.example.com'],
    ['CORS_ORIGINS', 'https://app.example.com/'],
    ['CORS_ORIGINS', '*,https://a.example'],
    ['TRUSTED_PROXIES', '10.0.0.0/99'],
    ['TRUSTED_PROXIES', 'proxy.internal'],
    ['RATE_LIMIT_CALL_PER_SECOND', 'many'],
  ])('%s=%s is refused by its name', (name, value) => {
    expect(refusal({ [name]: value })).toContain(name);
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
    expect([...read].sort()).toEqual(configTable.map(({ name }) => name).sort());
  });
});
