import { LedgerError } from '../../src/domain/errors.ts';
import { type CqlSession, MaybeApplied, type Row, type Statement } from '../../src/store/cassandra/session/session.ts';
import type { TextRoom } from '../../src/store/cassandra/session/text-room.ts';
import type { PlantedBug } from './bugs.ts';
import type { HalfDone, SimulatedTables } from './tables.ts';
import { request, type WireParts } from './wire.ts';

/** Wires of a node to Cassandra: each kind of statement fails in its own way. */
interface CassandraWires {
  readonly reads: WireParts;
  readonly writes: WireParts;
  readonly conditional: WireParts;
}

/** A node's session with the simulated Cassandra. Nothing is sent twice but plain reads and writes, once each. */
export function simulatedSession(tables: SimulatedTables, wires: CassandraWires, bug: PlantedBug | null): CqlSession {
  const again = async <T>(wire: WireParts, work: () => T): Promise<T> => {
    try {
      return await request(wire, work, timedOut);
    } catch (error) {
      if (!(error instanceof TimedOut)) throw error;
    }
    return request(wire, work, unavailable);
  };
  // By ledger: the head as the node read it last, and the claim and head that it goes by, which are those of its own
  // last write.
  const seen = new Map<unknown, Row>();
  const own = new Map<unknown, Row>();
  // The bucket that the node has claimed last.
  const claimed = new Map<unknown, number>();
  /** The read by which a claim settles the full bucket in front of its own. */
  const isSettling = (ledger: unknown, bucket: unknown): boolean =>
    claimed.get(ledger) === Number(bucket) + 1 && claimed.delete(ledger);
  return {
    read: async (statement, { serial = false, room } = {}) => {
      const [ledger, bucket] = statement.params;
      const isLeft = serial && isSettling(ledger, bucket) && bug === 'full_bucket_unsettled';
      const found = await again(wires.reads, () => tables.select(statement, { serial: serial && !isLeft }));
      const rows = within(room, found);
      if (!statement.cql.startsWith('SELECT fence')) return rows;
      if (bug === 'foreign_projections_skipped') return rows.map((row) => ({ ...row, pending: null }));
      if (bug === 'bucket_unchecked' && serial) return rows.map((row) => ({ ...row, ...own.get(ledger) }));
      for (const { head_seq, head_hash } of rows) if (head_seq !== null) seen.set(ledger, { head_seq, head_hash });
      return rows;
    },
    write: (statements) => {
      const written = bug === 'smaller_head_replaces_larger' ? statements.map(withoutSize) : statements;
      return again(wires.writes, () => tables.write(written));
    },
    decide: async (statements) => {
      const decision = await request(
        wires.conditional,
        (fate) => {
          const { random } = wires.conditional;
          const isHalfDone = fate !== 'answered' && random.chance(0.5);
          return tables.decide(
            statements,
            isUnconditional(statements, bug),
            isHalfDone ? random.pick(waysHalfDone) : null,
          );
        },
        () => new MaybeApplied(new TimedOut()),
      );
      const [first] = statements;
      if (first !== undefined && decision.applied) {
        const [fence, ...others] = first.params;
        const [head_seq, head_hash, , , batchOf] = others;
        const [claimOf, claimedBucket] = others;
        if (isBatch(first)) own.set(batchOf, { fence, head_seq, head_hash });
        else {
          own.set(claimOf, { fence, ...seen.get(claimOf) });
          claimed.set(claimOf, Number(claimedBucket));
        }
      }
      return decision;
    },
  };
}

const waysHalfDone = ['dropped', 'completed', 'rows_completed'] as const satisfies HalfDone[];

/** A session of the simulation itself, which answers at once and never fails. */
export function directSession(tables: SimulatedTables): CqlSession {
  return {
    read: async (statement, { serial = false, room } = {}) => within(room, tables.select(statement, { serial })),
    write: async (statements) => tables.write(statements),
    decide: async (statements) => tables.decide(statements),
  };
}

function within(room: TextRoom | undefined, rows: Row[]): Row[] {
  return room === undefined ? rows : rows.filter((row) => room.takes(row));
}

function isBatch(statement: Statement): boolean {
  return statement.cql.endsWith('head_seq = ? AND head_hash = ?');
}

/** A signed head with the timestamp of the server, and not its size. */
function withoutSize(statement: Statement): Statement {
  const { cql, params } = statement;
  if (!cql.startsWith('INSERT INTO signed_head')) return statement;
  return { cql: cql.replace(' USING TIMESTAMP ?', ''), params: params.slice(0, -1) };
}

function isUnconditional([first]: readonly Statement[], bug: PlantedBug | null): boolean {
  if (first === undefined || !isBatch(first)) return false;
  if (bug === 'unconditional_append') return true;
  // The last parameter is the hash expected of the head: none, in a bucket without events.
  return (bug === 'bucket_begun_unconditionally' || bug === 'bucket_unchecked') && first.params.at(-1) === null;
}

class TimedOut extends Error {}

function timedOut(): Error {
  return new TimedOut();
}

function unavailable(): LedgerError {
  return new LedgerError('unavailable', 'The store does not answer.');
}
