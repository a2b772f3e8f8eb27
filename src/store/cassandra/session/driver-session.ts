import cassandra from 'cassandra-driver';
import { LedgerError } from '../../../domain/errors.ts';
import { AvoidingPolicy } from './avoiding-policy.ts';
import { boundedPage } from './bounded-page.ts';
import { Circuit } from './circuit.ts';
import { controlConnectionOf, searchOnceAtATime } from './control-connection.ts';
import { healthOf, isProgrammerError } from './health.ts';
import { readPages } from './paged-read.ts';
import { type CqlSession, type Decision, MaybeApplied, type Row, type Statement } from './session.ts';
import { type CassandraSettings, portOf } from './settings.ts';

/** Time limit for a read on one node. Cassandra's own limit is 5 s. */
const readTimeoutMs = 2_500;
/** By Cassandra's defaults a conditional write may wait 1.8 s for other writes, and the write itself may take 2 s. */
const decideTimeoutMs = 4_500;
/** For opening a connection and preparing the statement. */
const overheadMs = 1_500;
/** Attempts of an idempotent statement, each at another node if there is one. */
const attemptsMax = 2;
/** A row has up to 576 KiB. */
const rowsPerAnswer = 64;
/** Statements without an answer after which the driver closes a connection. */
const silentStatementsMax = 4;

const { consistencies } = cassandra.types;

interface OpenSession extends AsyncDisposable {
  readonly session: CqlSession;
  readonly client: cassandra.Client;
}

/** A client that is not connected yet. With `keyspace` null the keyspace of the settings need not exist. */
export function createClient(
  settings: CassandraSettings,
  keyspace: string | null,
  loadBalancing: AvoidingPolicy = policyFor(settings),
): cassandra.Client {
  const { retry, reconnection } = cassandra.policies;
  const client = new cassandra.Client({
    contactPoints: [...settings.contactPoints],
    localDataCenter: settings.localDataCenter,
    // Nodes announce each other by address without a port. Without this option the driver would assume port 9042.
    protocolOptions: { port: portOf(settings.contactPoints[0] ?? '') },
    ...(keyspace === null ? {} : { keyspace }),
    ...(settings.login === null ? {} : { credentials: { ...settings.login } }),
    ...(settings.tlsCa === null ? {} : { sslOptions: { ca: [settings.tlsCa], rejectUnauthorized: true } }),
    encoding: { useBigIntAsLong: true },
    policies: {
      // The driver's default policy retries some reads and Unavailable. Only `again` below may send a statement twice.
      retry: new retry.FallthroughRetryPolicy(),
      // So a node that is back is used again within two seconds.
      reconnection: new reconnection.ExponentialReconnectionPolicy(100, 2_000, false),
      loadBalancing,
    },
    pooling: {
      coreConnectionsPerHost: { [cassandra.types.distance.local]: 2 },
      heartBeatInterval: 3_000,
    },
    socketOptions: {
      connectTimeout: 1_500,
      readTimeout: readTimeoutMs,
      defunctReadTimeoutThreshold: silentStatementsMax,
    },
    queryOptions: { prepare: true, isIdempotent: false, fetchSize: rowsPerAnswer, captureStackTrace: false },
  });
  searchOnceAtATime(controlConnectionOf(client));
  return client;
}

/** Prefers replicas of the partition, in the local data centre, that answer. */
function policyFor({ localDataCenter }: CassandraSettings): AvoidingPolicy {
  const { TokenAwarePolicy, DCAwareRoundRobinPolicy } = cassandra.policies.loadBalancing;
  return new AvoidingPolicy(new TokenAwarePolicy(new DCAwareRoundRobinPolicy(localDataCenter)));
}

/** A session in the keyspace of the settings. Its client is not connected yet. */
export function driverSession(settings: CassandraSettings): OpenSession {
  const { reach, keyspace } = settings;
  const policy = policyFor(settings);
  const client = createClient(settings, keyspace, policy);
  const consistency = reach === 'local' ? consistencies.localQuorum : consistencies.quorum;
  const serialConsistency = reach === 'local' ? consistencies.localSerial : consistencies.serial;
  const circuit = new Circuit(
    (error) => {
      const health = healthOf(error);
      if (typeof health === 'object') policy.avoid(health.silentNode);
      return health;
    },
    () => client.getState().getConnectedHosts().length,
    settings.requestsMax,
  );

  const again = async <T>(attempt: () => Promise<T>): Promise<T> => {
    for (let attempts = 1; ; attempts++) {
      try {
        return await circuit.run(readTimeoutMs + overheadMs, attempt);
      } catch (error) {
        if (error instanceof LedgerError || isProgrammerError(error)) throw error;
        if (attempts === attemptsMax) throw new LedgerError('unavailable', 'The store does not answer.', {}, error);
      }
    }
  };

  const session: CqlSession = {
    async read(statement, { serial = false, pageRows = rowsPerAnswer, room } = {}) {
      const options = {
        consistency: serial ? serialConsistency : consistency,
        isIdempotent: !serial,
        fetchSize: pageRows,
      };
      return readPages((pageState) => {
        const paged = pageState === undefined ? options : { ...options, pageState };
        if (room !== undefined) return again(boundedPage(client, statement, paged, room, readTimeoutMs));
        return again(() => client.execute(statement.cql, [...statement.params], paged));
      }, room);
    },
    async write(statements) {
      await again(() => send(client, statements, { consistency, isIdempotent: true }));
    },
    async decide(statements) {
      try {
        const options = { consistency, serialConsistency, isIdempotent: false, readTimeout: decideTimeoutMs };
        const result = await circuit.run(decideTimeoutMs + overheadMs, () => send(client, statements, options));
        return decisionOf(result);
      } catch (error) {
        // A LedgerError comes from the circuit: the write was not sent. After any other error the write may be applied.
        if (error instanceof LedgerError) throw error;
        throw new MaybeApplied(error);
      }
    },
  };
  return {
    session,
    client,
    [Symbol.asyncDispose]: () => {
      circuit.shut();
      return client.shutdown();
    },
  };
}

function send(
  client: cassandra.Client,
  statements: readonly Statement[],
  options: cassandra.QueryOptions,
): Promise<cassandra.types.ResultSet> {
  const [only] = statements;
  if (only === undefined) throw new TypeError('No statement');
  if (statements.length === 1) return client.execute(only.cql, [...only.params], options);
  const queries = statements.map(({ cql, params }) => ({ query: cql, params: [...params] }));
  return client.batch(queries, { ...options, prepare: true, logged: false });
}

function decisionOf(result: cassandra.types.ResultSet): Decision {
  const row: Row = result.first() ?? {};
  const applied = row['[applied]'];
  if (typeof applied !== 'boolean')
    throw new TypeError('The answer to a conditional write does not say whether it held');
  return { applied, row };
}
