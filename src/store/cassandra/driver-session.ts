import cassandra from 'cassandra-driver';
import { LedgerError } from '../../domain/errors.ts';
import { AvoidingPolicy } from './avoiding-policy.ts';
import { Circuit, DeadlinePassed, type Health } from './circuit.ts';
import { controlConnectionOf, searchOnceAtATime } from './control-connection.ts';
import { type CqlSession, type Decision, type Row, type Statement, Undecided } from './session.ts';
import { type CassandraSettings, portOf } from './settings.ts';

/** A read that takes longer than this on a node is given up; Cassandra's own limit is 5 s. */
const readTimeoutMs = 2_500;
/** A conditional write may wait its turn at Cassandra for 1.8 s and be written for 2 s by its defaults. */
const decideTimeoutMs = 4_500;
/** On top: opening a connection, preparing the statement. */
const overheadMs = 1_500;
/** Attempts of what may be done again, each at another node if there is one. */
const attemptsMax = 2;
/** Rows of up to 256 KiB come in answers of at most this many. */
const rowsPerAnswer = 64;

/** Statements without an answer after which a connection is closed; a node that hangs is then found to be down. */
const silentStatementsMax = 4;

const { consistencies, responseErrorCodes } = cassandra.types;

/** A session and the connections below it. */
export interface OpenSession extends AsyncDisposable {
  readonly session: CqlSession;
  readonly client: cassandra.Client;
}

/** A client that has not connected yet. `keyspace` null: the one in the settings need not exist. */
export function createClient(
  settings: CassandraSettings,
  keyspace: string | null,
  loadBalancing: AvoidingPolicy = policyFor(settings),
): cassandra.Client {
  const { retry, reconnection } = cassandra.policies;
  const client = new cassandra.Client({
    contactPoints: [...settings.contactPoints],
    localDataCenter: settings.localDataCenter,
    // Nodes tell of each other by address alone: without this the driver takes the others to be on 9042.
    protocolOptions: { port: portOf(settings.contactPoints[0] ?? '') },
    ...(keyspace === null ? {} : { keyspace }),
    ...(settings.login === null ? {} : { credentials: { ...settings.login } }),
    ...(settings.tlsCa === null ? {} : { sslOptions: { ca: [settings.tlsCa], rejectUnauthorized: true } }),
    encoding: { useBigIntAsLong: true },
    policies: {
      // The driver's own default retries some reads, and Unavailable: nothing here may be sent twice unasked.
      retry: new retry.FallthroughRetryPolicy(),
      // A node that came back is used again within two seconds.
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

/** A replica of what is asked for, in the local data centre, that answers. */
function policyFor({ localDataCenter }: CassandraSettings): AvoidingPolicy {
  const { TokenAwarePolicy, DCAwareRoundRobinPolicy } = cassandra.policies.loadBalancing;
  return new AvoidingPolicy(new TokenAwarePolicy(new DCAwareRoundRobinPolicy(localDataCenter)));
}

/** A session in the keyspace of the settings, whose client has not connected yet. */
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
    async read({ cql, params }, { serial = false } = {}) {
      const options = { consistency: serial ? serialConsistency : consistency, isIdempotent: !serial };
      const rows: Row[] = [];
      for (let pageState: string | undefined; ; ) {
        const paged = pageState === undefined ? options : { ...options, pageState };
        const result = await again(() => client.execute(cql, [...params], paged));
        rows.push(...result.rows);
        if (result.pageState === null || result.pageState === undefined) return rows;
        pageState = result.pageState;
      }
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
        // What the circuit did not let through was not sent. Of all else nothing is certain, whatever it says.
        if (error instanceof LedgerError) throw error;
        throw new Undecided(error);
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

/** A node that answers is there, even where it says that it waited for others; one without enough replicas is as good as gone. */
function healthOf(error: unknown): Health {
  if (error instanceof DeadlinePassed) return 'gone';
  if (error instanceof cassandra.errors.OperationTimedOutError && error.host) return { silentNode: error.host };
  if (!(error instanceof cassandra.errors.ResponseError)) return 'gone';
  const { unavailableException, overloaded, isBootstrapping } = responseErrorCodes;
  return [unavailableException, overloaded, isBootstrapping].includes(error.code) ? 'gone' : 'answered';
}

/** A statement that Cassandra will never accept: no retry mends it, and it should not look like an outage. */
export function isProgrammerError(error: unknown): boolean {
  if (error instanceof TypeError) return true;
  if (!(error instanceof cassandra.errors.ResponseError)) return false;
  const { syntaxError, invalid, configError } = responseErrorCodes;
  return [syntaxError, invalid, configError].includes(error.code);
}
