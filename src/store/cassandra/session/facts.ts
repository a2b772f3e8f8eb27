import { LedgerError } from '../../../domain/errors.ts';
import { type CqlSession, MaybeApplied, textOf } from './session.ts';

const GET = 'SELECT value FROM fact WHERE name = ?';
const SET = 'UPDATE fact SET value = ? WHERE name = ? IF value = ?';
const attemptsMax = 5;

/** Values that the nodes of a cluster agree on, by name: schema version, shard count, fingerprints of keys. */
export class ClusterFacts {
  readonly #session: CqlSession;

  constructor(session: CqlSession) {
    this.#session = session;
  }

  async get(name: string): Promise<string | null> {
    const [row] = await this.#session.read({ cql: GET, params: [name] });
    return textOf(row, 'value');
  }

  /** Stores `value` unless a value is stored already. Returns the stored value. */
  agree(name: string, value: string): Promise<string> {
    return this.move(name, null, value);
  }

  /**
   * Replaces `from` (null: no value) by `value`. Returns the stored value, which is another one if `from` was not
   * stored. Facts only move forward.
   */
  async move(name: string, from: string | null, value: string): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        const { applied, row } = await this.#session.decide([{ cql: SET, params: [value, name, from] }]);
        const stored = applied ? value : textOf(row, 'value');
        if (stored === null) throw new TypeError(`The fact ${name} is neither there nor absent`);
        return stored;
      } catch (error) {
        // The same write again settles the outcome, because an old value never comes back.
        if (!(error instanceof MaybeApplied)) throw error;
        if (attempt === attemptsMax)
          throw new LedgerError('unavailable', 'The store did not say whether the fact was written.', {}, error);
      }
    }
  }
}
