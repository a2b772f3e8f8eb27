import type cassandra from 'cassandra-driver';
import type { CassandraSettings } from '../../../src/store/cassandra/session/settings.ts';
import { withClient } from '../../contract/cassandra-factory.ts';

interface SnapshotRow {
  readonly table: string;
  /** Values as JSON, by column. What is null is left out. */
  readonly values: ReadonlyMap<string, string>;
  /** When the row was written, µs. null: it has no column with such a time. */
  readonly written: number | null;
}

/** All rows of a keyspace, with the times at which they were written, as `nodetool snapshot` keeps them. */
export type KeyspaceSnapshot = readonly SnapshotRow[];

/** Nothing may be written to the keyspace meanwhile. */
export function takeSnapshot(settings: CassandraSettings): Promise<KeyspaceSnapshot> {
  return withClient(settings, async (client) => {
    const { keyspace } = settings;
    const inSchema = async (what: string, from: string) =>
      (await client.execute(`SELECT ${what} FROM system_schema.${from} WHERE keyspace_name = ?`, [keyspace])).rows;
    const columns = await inSchema('table_name, column_name, kind', 'columns');
    const rows: SnapshotRow[] = [];
    for (const { table_name: table } of await inSchema('table_name', 'tables')) {
      const regular = columns.find(({ table_name, kind }) => table_name === table && kind === 'regular');
      rows.push(...(await rowsOf(client, String(table), regular === undefined ? null : String(regular.column_name))));
    }
    return rows;
  });
}

async function rowsOf(client: cassandra.Client, table: string, timed: string | null): Promise<SnapshotRow[]> {
  const read = async (what: string) => {
    const rows: Record<string, unknown>[] = [];
    for await (const row of await client.execute(`SELECT JSON ${what} FROM ${table}`))
      rows.push(JSON.parse(String(row['[json]'])));
    return rows;
  };
  const rows = await read('*');
  const times = timed === null ? [] : await read(`writetime(${timed}) AS written`);
  return rows.map((row, at) => ({
    table,
    values: new Map(
      Object.entries(row).flatMap(([column, value]) => (value === null ? [] : [[column, JSON.stringify(value)]])),
    ),
    written: (times[at]?.written as number | null | undefined) ?? null,
  }));
}

/**
 * Puts rows of a snapshot in, as `nodetool import` does. `writtenAt`, µs: the time of all rows, in place of their own.
 */
export function importSnapshot(
  settings: CassandraSettings,
  snapshot: KeyspaceSnapshot,
  writtenAt: number | null = null,
): Promise<void> {
  return withClient(settings, async (client) => {
    for (const { table, values, written } of snapshot) {
      const names = [...values.keys()];
      const places = names.map(() => 'fromJson(?)');
      const cql = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${places.join(', ')}) USING TIMESTAMP ?`;
      // Older than all that the keyspace has from `schema apply`.
      const at = writtenAt ?? written ?? 1;
      await client.execute(cql, [...values.values(), at], { prepare: true });
    }
  });
}
