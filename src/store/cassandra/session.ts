/** A statement and its parameters. Every statement is prepared, so its text never holds a value. */
export interface Statement {
  readonly cql: string;
  readonly params: readonly unknown[];
}

export type Row = { readonly [column: string]: unknown };

/** What came of a conditional write. */
export interface Decision {
  readonly applied: boolean;
  /** Where it was not applied: what stands there, of the columns that the condition names. */
  readonly row: Row;
}

/** A conditional write whose outcome nobody knows: it may have been applied, or may yet be. */
export class Undecided extends Error {
  constructor(cause: unknown) {
    super('Cassandra did not say whether the condition held', { cause });
    this.name = 'Undecided';
  }
}

/**
 * Cassandra as the stores use it, and the seam at which tests make it fail. Everything is bounded in time and may throw
 * LedgerError `unavailable` or `overloaded`.
 */
export interface CqlSession {
  /** All rows of a query, which bounds them itself. `serial`: after settling what is under way on the partition. */
  read(statement: Statement, options?: { readonly serial?: boolean }): Promise<Row[]>;
  /** Plain writes into one partition, together. They may be written again: the same values, or none older than what is there. */
  write(statements: readonly Statement[]): Promise<void>;
  /**
   * A conditional write, of one partition. Never sent twice. Throws Undecided whenever it may have been applied;
   * LedgerError only where it was not sent.
   */
  decide(statements: readonly Statement[]): Promise<Decision>;
}

export function textOf(row: Row | undefined, column: string): string | null {
  const value = row?.[column];
  return typeof value === 'string' ? value : null;
}

/** Of an int or bigint column. */
export function numberOf(row: Row | undefined, column: string): number | null {
  const value = row?.[column];
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'number' ? value : null;
}

/** The same with all its digits. */
export function bigintOf(row: Row | undefined, column: string): bigint | null {
  const value = row?.[column];
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' ? BigInt(value) : null;
}
