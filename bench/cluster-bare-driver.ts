import cassandra from 'cassandra-driver';
import type { Row, Statement } from '../src/store/cassandra/session/session.ts';

const { localQuorum, localSerial } = cassandra.types.consistencies;
/** A shared host may stand still for seconds, which says nothing of the loop. */
const readTimeout = 30_000;
const conditional = { consistency: localQuorum, serialConsistency: localSerial, isIdempotent: false, readTimeout };
const plain = { consistency: localQuorum, isIdempotent: true, readTimeout };
/** More than any read of the bench asks for. */
const rowsPerRead = 1_000;

/** The driver and nothing around it: no circuit, no deadlines, no second attempts. */
export class BareDriver {
  readonly #client: cassandra.Client;

  constructor(client: cassandra.Client) {
    this.#client = client;
  }

  async read({ cql, params }: Statement): Promise<Row[]> {
    return (await this.#client.execute(cql, [...params], { ...plain, fetchSize: rowsPerRead })).rows;
  }

  async write(statements: readonly Statement[]): Promise<void> {
    await this.#send(statements, plain);
  }

  /** Throws unless the condition held: nobody else writes to these ledgers. */
  async decide(statements: readonly Statement[]): Promise<void> {
    const result = await this.#send(statements, conditional);
    if (result.first()?.['[applied]'] !== true) throw new Error('a batch of the bare loop was refused');
  }

  #send(statements: readonly Statement[], options: cassandra.QueryOptions): Promise<cassandra.types.ResultSet> {
    const [only] = statements;
    if (only !== undefined && statements.length === 1) return this.#client.execute(only.cql, [...only.params], options);
    const queries = statements.map(({ cql, params }) => ({ query: cql, params: [...params] }));
    return this.#client.batch(queries, { ...options, prepare: true, logged: false });
  }
}
