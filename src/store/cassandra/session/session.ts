import type { TextRoom } from './text-room.ts';

/** A statement and its parameters. Every statement is prepared, so its text must not contain values. */
export interface Statement {
  readonly cql: string;
  readonly params: readonly unknown[];
}

export type Row = { readonly [column: string]: unknown };

export interface Decision {
  readonly applied: boolean;
  /** If the write was not applied: the stored values of the columns in its condition. */
  readonly row: Row;
}

/**
 * The outcome of a conditional write is unknown: it may have been applied, or may still be applied later. Appends pass
 * it on as OutcomeUnknown. Claims and rows of scopes make it `unavailable`. Records and facts are written again.
 */
export class MaybeApplied extends Error {
  constructor(cause: unknown) {
    super('Cassandra did not say whether the condition held', { cause });
    this.name = 'MaybeApplied';
  }
}

interface ReadOptions {
  readonly serial?: boolean;
  readonly pageRows?: number;
  readonly room?: TextRoom;
}

/**
 * Cassandra as the stores use it. Tests inject faults here. Every method has a time limit and may throw LedgerError
 * `unavailable` or `overloaded`.
 */
export interface CqlSession {
  /**
   * Returns all rows of a query. The query must limit them. With `serial` the read first settles conditional writes in
   * flight on the partition. `pageRows`: rows fetched at a time, if they are small; a default that suits events if left
   * out. With `room` the rows end where it is full.
   */
  read(statement: Statement, options?: ReadOptions): Promise<Row[]>;
  /**
   * Plain writes to one partition, sent together. They may be sent twice. So every writer must write the same values,
   * or the statement must have a timestamp that keeps a newer value.
   */
  write(statements: readonly Statement[]): Promise<void>;
  /**
   * A conditional write to one partition. Never sent twice. Throws MaybeApplied if it may have been applied, and
   * LedgerError only if it was not sent.
   */
  decide(statements: readonly Statement[]): Promise<Decision>;
}

/** The largest value of an int column. The driver cannot encode a larger one. */
export const intMax = 2 ** 31 - 1;

/** The value of a text column. null if there is no row or no value. */
export function textOf(row: Row | undefined, column: string): string | null {
  const value = row?.[column];
  return typeof value === 'string' ? value : null;
}

/** The value of a blob column. null if there is no row or no value. */
export function bytesOf(row: Row | undefined, column: string): Buffer | null {
  const value = row?.[column];
  return Buffer.isBuffer(value) ? value : null;
}

/** The value of an int or bigint column as a number. null if there is no row or no value. */
export function numberOf(row: Row | undefined, column: string): number | null {
  const value = row?.[column];
  if (typeof value === 'bigint') return Number(value);
  return typeof value === 'number' ? value : null;
}

/** Like numberOf, without loss of precision. */
export function bigintOf(row: Row | undefined, column: string): bigint | null {
  const value = row?.[column];
  if (typeof value === 'bigint') return value;
  return typeof value === 'number' ? BigInt(value) : null;
}

export function inParts<T>(items: readonly T[], lengthMax: number): T[][] {
  const parts: T[][] = [];
  for (let at = 0; at < items.length; at += lengthMax) parts.push(items.slice(at, at + lengthMax));
  return parts;
}

/**
 * Writes each item, at most `atOnceMax` at a time. Rejects at the first failure. The others are still begun: each write
 * is good by itself, and where a part of the data has no quorum the next attempt would fail at the same item.
 */
export async function eachAtOnce<T>(
  items: readonly T[],
  atOnceMax: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values();
  const worker = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(items.length, atOnceMax) }, worker));
}
