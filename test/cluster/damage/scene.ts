import type cassandra from 'cassandra-driver';
import { expect } from 'vitest';
import { append, type Master, newMaster, newOrder, type Order, type Party, signedBy } from '../../support/parties.ts';
import { done } from '../../support/parties-rest.ts';

/** The ledger of one damage: 0 GENESIS, 1 opening, 2 and 3 masters, 4 … 13 notes of the first, 14 a grant. */
export interface Scene {
  readonly order: Order;
  readonly master: Master;
  readonly other: Master;
}

/** A scene with direct access to its rows in Cassandra. */
export interface StoredScene {
  readonly scene: Scene;
  run(cql: string, params: readonly unknown[]): Promise<cassandra.types.ResultSet>;
  row(seq: number): Promise<string>;
  setRow(seq: number, row: string): Promise<unknown>;
}

export async function makeScene(base: string): Promise<Scene> {
  const order = await newOrder(base);
  const { supplier } = order;
  const [master, other] = [await newMaster(order), await newMaster(order, supplier, 'PO-2')];
  const scene = { order, master, other };
  for (let n = 0; n < 10; n += 1) await note(base, scene, n, n === 0 ? { 'idempotency-key': 'note-once' } : {});
  return scene;
}

/** Appends an event to the first master of a scene. */
export async function note(base: string, { order, master }: Scene, n: number, headers = {}): Promise<void> {
  expect((await append({ ...master, base }, order.buyer, 'NOTED', { n }, { headers })).status).toBe(200);
}

export async function grant(base: string, { buyer, ledgerId }: Order, delegate: Party): Promise<void> {
  const body = { ledger_id: ledgerId, delegate_actor_id: delegate.actorId, role: 'AUDITOR' };
  await done(base, 'POST', '/v1/delegation/ledger', {
    headers: signedBy(buyer, 'LEDGER_DELEGATION_GRANTED', ledgerId, { ...body, permissions: {} }),
    body,
  });
}

export function storedScene(client: cassandra.Client, scene: Scene): StoredScene {
  const run = (cql: string, params: readonly unknown[]) => client.execute(cql, [...params], { prepare: true });
  const key = [scene.order.ledgerId, 0];
  return {
    scene,
    run,
    row: async (seq) => {
      const rows = await run(
        "SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq = ?",
        [...key, seq],
      );
      return String(rows.first()?.row);
    },
    setRow: (seq, row) =>
      run("INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, '', ?, ?)", [...key, seq, row]),
  };
}
