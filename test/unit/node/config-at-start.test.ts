import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { readClusterConfig } from '../../../cluster/config.ts';
import { checkClusterFiles } from '../../../cluster/config-files.ts';
import { clusterSettings } from '../../../cluster/settings.ts';
import { readConfig } from '../../../src/node/config.ts';
import { startEmbedded } from '../../../src/node/embedded.ts';
import { readTls } from '../../../src/node/listeners.ts';
import { nodeSettings } from '../../../src/node/settings.ts';
import type { Environment } from '../../../src/runtime/config/setting.ts';
import { createLog } from '../../../src/runtime/telemetry/log.ts';
import { refused } from '../../support/refused-start.ts';
import { suiteDir } from '../../support/running-node.ts';

const folder = suiteDir();
afterEach(() => vi.restoreAllMocks());

const at = (name: string) => join(folder, name);
const file = (name: string, text: string) => {
  writeFileSync(at(name), text, { mode: 0o600 });
  return at(name);
};
const openssl = (args: string) => void execFileSync('openssl', args.split(' '), { stdio: 'pipe', cwd: folder });
const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256';
openssl(`req -x509 ${newKey} -days 30 -keyout ca.key -out ca.pem -subj /CN=ca`);
openssl(`req -x509 ${newKey} -days 30 -keyout other.key -out other.pem -subj /CN=other`);
openssl(`req ${newKey} -keyout node.key -out node.csr -subj /CN=node`);
openssl('x509 -req -in node.csr -CA ca.pem -CAkey ca.key -set_serial 1 -days 30 -out node.pem');
openssl('ec -in node.key -aes128 -passout pass:secret -out locked.key');
openssl('genpkey -algorithm ed25519 -out authority.pem');
const [none, empty, text] = [at('none'), file('empty', ''), file('text', 'no PEM and no key')];
const secretsKey = file('secrets.key', Buffer.alloc(32, 1).toString('base64'));
const wrongCertificates = [
  none,
  empty,
  text,
  at('node.key'),
  file('cut.pem', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'),
];
const wrongKeys = [none, empty, text, at('node.pem'), at('locked.key'), at('other.key')];
const dayMs = 86_400_000;

/**
 * What a start says on standard error, and the code that it ends with; null where nothing is wrong with its settings.
 */
function outcomeOf(start: () => void): { readonly said: string; readonly code: number } | null {
  try {
    start();
    return null;
  } catch (error) {
    return refused(error);
  }
}

function expectOneSentence(outcome: ReturnType<typeof outcomeOf>, variable: string): void {
  expect(outcome, 'it was taken').not.toBeNull();
  expect(outcome?.code).toBe(1);
  expect(outcome?.said).toMatch(/^ledger-trust: [A-Z].*\.\n$/);
  expect(outcome?.said).toContain(variable);
  expect(outcome?.said.match(/[.!?:](?=\s|$)/g)?.filter((mark) => mark !== ':')).toHaveLength(1);
  expect(outcome?.said).not.toMatch(/\n.*\n|\bat .*:\d+:\d+/);
}

const wrongNumbers = ['-1', '1.5', '1e3', 'x', '80a', '99999999999', '0x10'];
const wrongBounds = [...wrongNumbers, '0', '1000001'];
const wrongMebibytes = [...wrongNumbers, '0', '4097'];
const wrongPorts = [...wrongNumbers, '65536'];
const wrongHosts = ['http://10.0.0.1', '10.0.0.1:80', '[::1]', 'two words', 'a_b/', '256.1.1.1.1', '-x', 'a..b'];

/** Values, or whole environments, that each variable refuses. */
const wrong: Readonly<Record<string, readonly (string | Environment)[]>> = {
  SVC_MODE: ['prod', 'PRODUCTION'],
  HOST: wrongHosts,
  PORT: [...wrongPorts, '50051'],
  GRPC_PORT: [...wrongPorts, '8080'],
  OPS_HOST: wrongHosts,
  OPS_PORT: [...wrongPorts, '8080'],
  TLS_CERT_FILE: wrongCertificates.map((TLS_CERT_FILE) => ({ TLS_CERT_FILE, TLS_KEY_FILE: at('node.key') })),
  TLS_KEY_FILE: wrongKeys.map((TLS_KEY_FILE) => ({ TLS_CERT_FILE: at('node.pem'), TLS_KEY_FILE })),
  TLS_TERMINATED: ['yes', '2'],
  CORS_ORIGINS: [
    ...['app.example.com', 'https://a.example/', 'ftp://a.example'],
    ...['https://a.example,*', '*,https://a.example', 'https://*.example.com'],
  ],
  TRUSTED_PROXIES: ['10.0.0.0/99', 'proxy', 'http://10.0.0.1'],
  LOG_LEVEL: ['loud', 'INFO'],
  WEBHOOK_CLOSED_PORTS: ['0', '70000', '80;81', 'x'],
  RATE_LIMIT_CREATE_PER_MINUTE: wrongNumbers,
  RATE_LIMIT_CREATE_BURST: [...wrongNumbers, { RATE_LIMIT_CREATE_PER_MINUTE: '60', RATE_LIMIT_CREATE_BURST: '0' }],
  RATE_LIMIT_CALL_PER_SECOND: wrongNumbers,
  RATE_LIMIT_CALL_BURST: [...wrongNumbers, { RATE_LIMIT_CALL_PER_SECOND: '60', RATE_LIMIT_CALL_BURST: '0' }],
  RATE_LIMIT_APPEND_PER_SECOND: wrongNumbers,
  RATE_LIMIT_APPEND_BURST: [...wrongNumbers, { RATE_LIMIT_APPEND_PER_SECOND: '60', RATE_LIMIT_APPEND_BURST: '0' }],
  FOLLOWERS_MAX: wrongBounds,
  FOLLOWERS_PER_ACTOR_MAX: wrongBounds,
  SUBSCRIPTIONS_MAX: wrongBounds,
  LEDGER_QUEUE_MAX: wrongBounds,
  LEDGER_QUEUE_MIB: wrongMebibytes,
  SIGNATURE_QUEUE_MAX: wrongBounds,
  READS_AT_ONCE: wrongBounds,
  READS_AT_ONCE_PER_CALLER: wrongBounds,
  READS_WAITING: wrongBounds,
  CONNECTIONS_MAX: wrongBounds,
  SANDBOX_RUNS_WAITING: wrongBounds,
  CHANGES_WAITING: wrongBounds,
  GRPC_CONNECTION_REQUEST_MIB: ['1', ...wrongMebibytes],
  GRPC_CONNECTION_ANSWER_MIB: ['7', ...wrongMebibytes],
  MEMORY_BUDGET_MIB: [...wrongNumbers, '31', '65537'],
  LOG_ORIGIN: [
    'https://ledger.example',
    'Ledger.example',
    'ledger.example/',
    'ledger.example/../v1',
    'a b',
    'a'.repeat(121),
  ],
};

/** These are looked at when the stores are opened. */
const atStores: Readonly<Record<string, readonly string[]>> = {
  DATA_DIR: [text, '/dev/null/data'],
  AUTHORITY_KEY_FILE: [none, empty, text, at('node.key'), at('node.pem')],
  SECRETS_KEY_FILE: [none, empty, text, file('short.key', 'AAAA')],
  LOG_KEY_FILE: [none, empty, text, at('node.key'), at('node.pem')],
};

const least = {
  REDIS_URL: 'redis://redis:6379',
  CASSANDRA_CONTACT_POINTS: 'cassandra:9042',
  AUTHORITY_KEY_FILE: at('authority.pem'),
  SECRETS_KEY_FILE: secretsKey,
  CLUSTER_SECRET: '0123456789abcdef',
};
const certificates = {
  CLUSTER_TLS_CA_FILE: at('ca.pem'),
  CLUSTER_TLS_CERT_FILE: at('node.pem'),
  CLUSTER_TLS_KEY_FILE: at('node.key'),
};
const wrongMs = [...wrongNumbers, '10000000'];

const wrongInCluster: typeof wrong = {
  REDIS_URL: [
    'redis',
    'redis:6379',
    'http://redis',
    'redis://',
    'redis://redis:99999',
    'redis://redis:0',
    'redis://:pass word@',
    'redis://redis/a/b',
    'redis:///0',
  ],
  CLUSTER_NAME: ['{}', 'two words', 'x'.repeat(65)],
  CASSANDRA_CONTACT_POINTS: [
    ' , ',
    'http://cassandra:9042',
    'cassandra:0',
    'cassandra:99999',
    'cassandra:x',
    'a b',
    'a:1,b:2',
    'a:9042/x',
  ],
  CASSANDRA_DATA_CENTER: ['two words', 'x'.repeat(129), "dc'1"],
  CASSANDRA_KEYSPACE: ['Ledger', 'x;y', 'x'.repeat(49)],
  CASSANDRA_CONSISTENCY: ['ONE', 'quorum'],
  CASSANDRA_USERNAME: ['somebody'],
  CASSANDRA_PASSWORD_FILE: [
    secretsKey,
    ...[none, empty].map((CASSANDRA_PASSWORD_FILE) => ({ CASSANDRA_USERNAME: 'u', CASSANDRA_PASSWORD_FILE })),
  ],
  CASSANDRA_TLS_CA_FILE: wrongCertificates,
  CASSANDRA_ALLOW: ['everything', 'paxos-v1,x'],
  CASSANDRA_REQUESTS_MAX: wrongBounds,
  CASSANDRA_WRITES_MAX: wrongBounds,
  PEER_COMMANDS_MAX: ['63', ...wrongBounds],
  PEER_UNSENT_MIB: ['3', ...wrongMebibytes],
  NODE_ID: ['two words', 'a/b', 'x'.repeat(129)],
  INTERNAL_HOST: wrongHosts,
  INTERNAL_PORT: [...wrongPorts, '8080', '50051'],
  ADVERTISE_ADDRESS: ['http://10.0.0.1', 'a:0', 'a:99999', 'a:b', '[::1', 'two words', 'a/b', 'user@host:1'],
  CLUSTER_TLS_CA_FILE: [
    ...wrongCertificates.map((CLUSTER_TLS_CA_FILE) => ({ ...certificates, CLUSTER_TLS_CA_FILE })),
    { ...certificates, CLUSTER_TLS_CA_FILE: at('other.pem') },
  ],
  CLUSTER_TLS_CERT_FILE: [...wrongCertificates, at('other.pem')].map((CLUSTER_TLS_CERT_FILE) => ({
    ...certificates,
    CLUSTER_TLS_CERT_FILE,
  })),
  CLUSTER_TLS_KEY_FILE: wrongKeys.map((CLUSTER_TLS_KEY_FILE) => ({ ...certificates, CLUSTER_TLS_KEY_FILE })),
  CLUSTER_SECRET: ['short', { CLUSTER_SECRET: '' }],
  CLUSTER_SECRET_FILE: [
    secretsKey,
    { CLUSTER_SECRET: '', CLUSTER_SECRET_FILE: none },
    { CLUSTER_SECRET: '', CLUSTER_SECRET_FILE: empty },
  ],
  START_WAIT_MS: wrongMs,
  STOP_DELAY_SECONDS: [...wrongNumbers, '601'],
  LEASE_TTL_MS: [
    ...wrongMs,
    '0',
    '1',
    '999',
    '600001',
    { LEASE_TTL_MS: '3000', LEASE_RENEW_MS: '2900', LEASE_MARGIN_MS: '100' },
  ],
  LEASE_RENEW_MS: [...wrongMs, '0', '1', { LEASE_RENEW_MS: '1000', LEASE_MARGIN_MS: '1000' }],
  LEASE_MARGIN_MS: [...wrongMs, '0', '1', '6000'],
  REBALANCE_QUIET_MS: [...wrongMs, '0'],
};

const cases = (table: typeof wrong) =>
  Object.entries(table).flatMap(([variable, values]) =>
    values.map((value): [string, string, Environment] => {
      const env = typeof value === 'string' ? { [variable]: value } : value;
      return [variable, JSON.stringify(env).replaceAll(folder, ''), env];
    }),
  );

describe('a node that stands alone', () => {
  const start = (env: Environment) => void readTls(readConfig(env), Date.now());

  test('tries a wrong value of every variable', () => {
    expect([...Object.keys(wrong), ...Object.keys(atStores)].sort()).toEqual(
      Object.values(nodeSettings)
        .map(({ name }) => name)
        .sort(),
    );
  });

  test.each(cases(wrong))('says in one sentence what is wrong with %s: %s', (variable, _, env) => {
    expectOneSentence(
      outcomeOf(() => start(env)),
      variable,
    );
  });

  test.each(cases(atStores))('says in one sentence what is wrong with %s: %s', async (variable, _, env) => {
    mkdirSync(at('data'), { recursive: true });
    const config = readConfig({
      DATA_DIR: at('data'),
      HOST: '127.0.0.1',
      PORT: '0',
      GRPC_PORT: '0',
      OPS_PORT: '0',
      ...env,
    });
    const failure = await startEmbedded(config, createLog('silent'), () => {}).then(
      async (node) => {
        await node.stop();
        return null;
      },
      (error: unknown) => error,
    );
    expectOneSentence(failure === null ? null : refused(failure), variable);
  });

  test('takes a certificate with its key, and says when it has expired or is not valid yet', () => {
    const env = { TLS_CERT_FILE: at('node.pem'), TLS_KEY_FILE: at('node.key') };
    expect(outcomeOf(() => start(env))).toBeNull();
    const now = Date.now();
    for (const [days, said] of [
      [31, 'has expired on'],
      [-2, 'is valid from'],
    ] as const) {
      vi.spyOn(Date, 'now').mockReturnValue(now + days * dayMs);
      const outcome = outcomeOf(() => start(env));
      expectOneSentence(outcome, 'TLS_CERT_FILE');
      expect(outcome?.said).toContain(said);
    }
  });
});

describe('a node of a cluster', () => {
  const start = (env: Environment) => checkClusterFiles(readClusterConfig({ ...least, ...env }), Date.now());

  test('tries a wrong value of every variable', () => {
    expect(Object.keys(wrongInCluster).sort()).toEqual(
      Object.values(clusterSettings)
        .map(({ name }) => name)
        .sort(),
    );
  });

  const { DATA_DIR: _, ...keyFiles } = atStores;
  test.each(cases({ ...wrongInCluster, ...keyFiles, TLS_KEY_FILE: wrong.TLS_KEY_FILE ?? [] }))(
    'says in one sentence what is wrong with %s: %s',
    (variable, __, env) => {
      expectOneSentence(
        outcomeOf(() => start(env)),
        variable,
      );
    },
  );

  test('takes what is right', () => {
    expect(outcomeOf(() => start({}))).toBeNull();
    expect(outcomeOf(() => start(certificates))).toBeNull();
    const right = {
      REDIS_URL: 'rediss://user:pa%20ss@[fd00::1]:6380/1',
      CASSANDRA_CONTACT_POINTS: 'cassandra-1:9042, [fd00::2]:9042,10.0.0.3',
      ADVERTISE_ADDRESS: '[fd00::3]:9100',
      INTERNAL_HOST: '::',
      CASSANDRA_TLS_CA_FILE: at('ca.pem'),
      LEASE_TTL_MS: '1000',
    };
    expect(outcomeOf(() => start(right))).toBeNull();
  });

  test.each([
    ['CLUSTER_TLS_CA_FILE', certificates],
    ['CASSANDRA_TLS_CA_FILE', { CASSANDRA_TLS_CA_FILE: at('ca.pem') }],
  ])('says that %s has expired', (variable, env) => {
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 31 * dayMs);
    const outcome = outcomeOf(() => start(env));
    expectOneSentence(outcome, variable);
    expect(outcome?.said).toContain('has expired on');
  });

  test('says nothing of the password in a wrong REDIS_URL', () => {
    const outcome = outcomeOf(() => start({ REDIS_URL: 'redis://:hunter2hunter2@redis:99999' }));
    expectOneSentence(outcome, 'REDIS_URL');
    expect(outcome?.said).not.toContain('hunter2');
  });
});
