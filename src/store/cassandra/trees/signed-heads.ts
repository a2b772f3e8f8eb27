import { formatSignedHead, readSignedHead, type SignedHead, type SignedHeads } from '../../signed-heads.ts';
import { checkSignedHead } from '../../write-checks.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { bytesOf, type CqlSession } from '../session/session.ts';

const GET = preparedAtStart('SELECT head FROM signed_head WHERE origin = ?');
const RAISE = preparedAtStart('INSERT INTO signed_head (origin, head) VALUES (?, ?) USING TIMESTAMP ?');

/**
 * The signed heads of a keyspace. The timestamp of a head is its size, so that Cassandra keeps the largest size, in
 * whatever order the writes arrive.
 */
export class CassandraSignedHeads implements SignedHeads {
  readonly #session: CqlSession;

  constructor(session: CqlSession) {
    this.#session = session;
  }

  async get(origin: string): Promise<SignedHead | null> {
    const [row] = await this.#session.read({ cql: GET, params: [keyText(origin)] });
    return row === undefined ? null : readSignedHead(origin, bytesOf(row, 'head'));
  }

  async raise(origin: string, size: number, root: Uint8Array): Promise<void> {
    checkSignedHead(origin, size, root);
    const params = [keyText(origin), formatSignedHead(origin, size, root), BigInt(size)];
    await this.#session.write([{ cql: RAISE, params }]);
  }
}
