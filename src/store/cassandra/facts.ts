import { LedgerError } from '../../domain/errors.ts';
import { type CqlSession, textOf, Undecided } from './session.ts';

const GET = 'SELECT value FROM fact WHERE name = ?';
const SET = 'UPDATE fact SET value = ? WHERE name = ? IF value = ?';
const attemptsMax = 5;

/** What the nodes of a cluster agree on, by name: schema version, shard count, fingerprints of keys. */
export class ClusterFacts {
  readonly #session: CqlSession;

  constructor(session: CqlSession) {
    this.#session = session;
  }

  async get(name: string): Promise<string | null> {
    const [row] = await this.#session.read({ cql: GET, params: [name] });
    return textOf(row, 'value');
  }

  /** What stands under the name once this resolves: `value`, unless somebody was first. */
  agree(name: string, value: string): Promise<string> {
    return this.#set(name, null, value);
  }

  /** The same where `from` stood there: a fact that moves on, and never back. */
  move(name: string, from: string, value: string): Promise<string> {
    return this.#set(name, from, value);
  }

  async #set(name: string, from: string | null, value: string): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        const { applied, row } = await this.#session.decide([{ cql: SET, params: [value, name, from] }]);
        const standing = applied ? value : textOf(row, 'value');
        if (standing === null) throw new TypeError(`The fact ${name} is neither there nor absent`);
        return standing;
      } catch (error) {
        // The same again finds out: what stood there never comes back.
        if (!(error instanceof Undecided) || attempt === attemptsMax) throw asUnavailable(error);
      }
    }
  }
}

function asUnavailable(error: unknown): unknown {
  if (!(error instanceof Undecided)) return error;
  return new LedgerError('unavailable', 'The store did not say whether the fact was written.', {}, error);
}
