import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { CassandraLedgerStore } from '../../../src/store/cassandra/log/ledger-store.ts';
import type { CqlSession } from '../../../src/store/cassandra/session/session.ts';
import type { LedgerStore } from '../../../src/store/ledger-store.ts';
import { directSession } from '../../simulation/cassandra.ts';
import { SimulatedTables } from '../../simulation/tables.ts';
import {
  append,
  createMaster,
  delegate,
  grant,
  ledgerId,
  masterId,
  openLedger,
  stranger,
  supplier,
  uuid,
} from '../../support/commands.ts';
import { typesSent, type WebhookRig, webhookRig } from '../../support/webhook-rig.ts';
import { beforeCalls, type Rig, rig, storeWith } from '../../support/world.ts';

const delegates = 'https://delegate.example/';
const suppliers = 'https://supplier.example/';
const url = (to: string) => ({ url: to, ledgerId });

interface Node {
  readonly base: Rig;
  readonly store: LedgerStore;
}

/** A node with the store adapter for Cassandra. While `dies` is true, only conditional writes arrive. */
function nodeOn(tables: SimulatedTables, clock: Rig['clock'] | undefined, dies: () => boolean): Node {
  const direct = directSession(tables);
  const session: CqlSession = {
    ...direct,
    write: (statements) => (dies() ? new Promise(() => {}) : direct.write(statements)),
  };
  const store = new CassandraLedgerStore({ session, now: Date.now, random: randomBytes });
  return { base: rig({ wrap: () => store, ...(clock === undefined ? {} : { clock }) }), store };
}

interface Lost {
  readonly first: WebhookRig;
  /** A node that takes over. `wrap` changes its store. */
  takenOver(options?: { wrap?: (store: LedgerStore) => LedgerStore; ownsShardOf?: () => boolean }): WebhookRig;
}

/** An order whose node dies between its last batch, of these commands, and the batch's projections. */
async function diedAt(before: readonly Command[], ...last: readonly Command[]): Promise<Lost> {
  const tables = new SimulatedTables();
  let dies = false;
  const dying = nodeOn(tables, undefined, () => dies);
  const first = webhookRig({ rig: dying.base, ledgers: dying.store });
  await first.run(openLedger(), createMaster(), ...before);
  await first.subscribe(supplier, url(suppliers));
  await first.subscribe(delegate, { url: delegates });
  await first.runToEnd(append({ eventType: 'BEFORE' }));
  dies = true;
  for (const command of last) first.directory.submit(command).catch(() => {});
  await first.quiet();
  first.kill();
  return {
    first,
    takenOver: ({ wrap = (inner: LedgerStore) => inner, ownsShardOf = () => true } = {}) => {
      const node = nodeOn(tables, first.clock, () => false);
      const store = wrap(node.store);
      const base = rig({ clock: first.clock, wrap: () => store });
      const next = first.restarted({ rig: base, ledgers: store, ownsShardOf });
      next.webhooks.start();
      return next;
    },
  };
}

const toDelegate = grant({ access: 'read', linkId: uuid(0x77) });
const toStranger = grant({ scope: 'ledger', role: 'AUDITOR', delegateActorId: stranger, linkId: uuid(0x78) });

async function statusesOf(world: WebhookRig, actorId: string): Promise<(string | undefined)[]> {
  const { subscriptions } = await world.api.listWebhooks(
    { $typeName: 'svc.v1.ListWebhooksRequest' },
    world.call(actorId),
  );
  const { deliveries } = await world.deliveries(actorId, subscriptions[0]?.id ?? '');
  return deliveries.map(({ status }) => status);
}

test('a grant whose node died before it wrote the projections is delivered to the delegate', async () => {
  const { takenOver } = await diedAt([], toDelegate);
  const next = takenOver();
  await next.quiet();
  expect(typesSent(next, delegates)).toEqual(['MASTER_DELEGATION_GRANTED']);
  expect(typesSent(next, suppliers)).toEqual(['MASTER_DELEGATION_GRANTED']);
  expect(await statusesOf(next, delegate)).toEqual(['DELIVERED']);
});

test('later events of the same batch are delivered too, the ledger’s own ones included', async () => {
  const { takenOver } = await diedAt([], toDelegate, append({ eventType: 'BEHIND' }), toStranger);
  const next = takenOver();
  await next.quiet();
  const sent = ['MASTER_DELEGATION_GRANTED', 'BEHIND', 'LEDGER_DELEGATION_GRANTED'];
  expect(typesSent(next, delegates)).toEqual(sent);
  expect(typesSent(next, suppliers)).toEqual(sent);
});

test('the first events of a master are delivered too', async () => {
  const other = uuid(0xab);
  const { takenOver } = await diedAt(
    [grant({ scope: 'ledger', role: 'AUDITOR', linkId: uuid(0x79) })],
    createMaster({ masterId: other, businessRef: 'PO-2' }),
    append({ masterId: other, eventType: 'FIRST' }),
  );
  const next = takenOver();
  await next.quiet();
  expect(typesSent(next, suppliers)).toEqual(['TRACELEDGER_MASTER_CREATED', 'FIRST']);
  expect(typesSent(next, delegates)).toEqual(['TRACELEDGER_MASTER_CREATED', 'FIRST']);
});

test('while claims fail, the event waits and no delivery fails', async () => {
  let down = true;
  const { takenOver } = await diedAt([], toDelegate);
  const next = takenOver({
    wrap: (store) =>
      beforeCalls(store, {
        claim: () => {
          if (down) throw new LedgerError('unavailable', 'The store does not answer.');
        },
      }),
  });
  await next.quiet();
  await next.advance(5_000);
  expect([next.posts, await statusesOf(next, supplier)]).toEqual([[], ['DELIVERED']]);
  down = false;
  await next.advance(1_000);
  expect(typesSent(next, delegates)).toEqual(['MASTER_DELEGATION_GRANTED']);
});

test('a node that has lost the ledger meanwhile does not claim it', async () => {
  let isOwned = true;
  const { takenOver } = await diedAt([], toDelegate);
  const next = takenOver({
    ownsShardOf: () => isOwned,
    wrap: (store) =>
      storeWith(store, {
        read: async (...asked) => {
          const entries = await store.read(...asked);
          isOwned = false;
          return entries;
        },
      }),
  });
  await next.quiet();
  await next.advance(5_000);
  expect(isOwned).toBe(false);
  expect([next.rig.meter.claims, next.posts]).toEqual([[], []]);
});

test('a node does not claim ledgers at rest that it takes over, nor for its own events', async () => {
  const asked = { stands: 0 };
  const { first, takenOver } = await diedAt([]);
  const next = takenOver({ wrap: (store) => beforeCalls(store, { stands: () => void asked.stands++ }) });
  await next.quiet();
  expect([first.rig.meter.claims, next.rig.meter.claims]).toEqual([['activation'], []]);
  for (const eventType of ['ONE', 'TWO']) await next.run(append({ eventType, masterId }));
  await next.quiet();
  expect(typesSent(next, suppliers)).toEqual(['ONE', 'TWO']);
  expect([next.rig.meter.claims, asked]).toEqual([['activation'], { stands: 0 }]);
});
