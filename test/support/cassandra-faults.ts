import { LedgerError } from '../../src/domain/errors.ts';
import {
  type CqlSession,
  type Decision,
  MaybeApplied,
  type Statement,
} from '../../src/store/cassandra/session/session.ts';

/**
 * How a conditional write goes wrong between a store and Cassandra. `unsent`: it is refused before it is sent. `lost`:
 * never arrives. `applied`: is carried out and the answer is lost. `late`: is carried out when `arrive` is called.
 */
export type DecideFault = 'unsent' | 'lost' | 'applied' | 'late';

interface FaultySession {
  readonly around: (session: CqlSession) => CqlSession;
  /** Faults of the next conditional writes, in their order; null lets one pass. */
  failDecisions(...faults: (DecideFault | null)[]): void;
  /** So many of the next plain writes that touch a table fail, unavailable. */
  failWrites(table: string, count: number): void;
  /** From here on nothing works any more: the process has crashed. */
  crash(): void;
  /** What was kept on its way arrives. Answers whether each was applied. */
  arrive(): Promise<boolean[]>;
  /** Texts of all statements so far. */
  readonly sent: readonly string[];
}

export function faultySession(): FaultySession {
  const decisions: (DecideFault | null)[] = [];
  const failing = new Map<string, number>();
  const kept: (() => Promise<Decision>)[] = [];
  const sent: string[] = [];
  let crashed = false;
  const unavailable = () => new LedgerError('unavailable', 'injected');
  const note = (statements: readonly Statement[]) => {
    if (crashed) throw unavailable();
    for (const { cql } of statements) sent.push(cql);
  };
  return {
    sent,
    failDecisions: (...faults) => void decisions.push(...faults),
    failWrites: (table, count) => void failing.set(table, count),
    crash: () => {
      crashed = true;
    },
    async arrive() {
      const arrived = await Promise.all(kept.splice(0).map((send) => send()));
      return arrived.map(({ applied }) => applied);
    },
    around: (session) => ({
      async read(statement, options) {
        note([statement]);
        return session.read(statement, options);
      },
      async write(statements) {
        note(statements);
        for (const [table, count] of failing)
          if (count > 0 && statements.some(({ cql }) => cql.startsWith(`INSERT INTO ${table} `))) {
            failing.set(table, count - 1);
            throw unavailable();
          }
        return session.write(statements);
      },
      async decide(statements) {
        note(statements);
        const fault = decisions.shift() ?? null;
        if (fault === null) return session.decide(statements);
        if (fault === 'unsent') throw unavailable();
        if (fault === 'applied') await session.decide(statements);
        if (fault === 'late') kept.push(() => session.decide(statements));
        throw new MaybeApplied(new Error(`injected: ${fault}`));
      },
    }),
  };
}
