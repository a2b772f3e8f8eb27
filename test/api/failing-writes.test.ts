import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { MemoryLedgerStore } from '../support/memory-store/ledger-store.ts';
import { MemoryRecordStore } from '../support/memory-store/record-store.ts';
import { onboarding } from '../support/organizations.ts';
import { newOrder, signedBy } from '../support/parties.ts';
import { done, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';
import { runFaultyNode } from '../support/running-node-faulty.ts';
import type { ChooseFault, StoreFault, StoreOperation } from '../support/store-faults.ts';
import { recordsWith } from '../support/world.ts';

/** Kinds of records that a caller, or somebody else, can come to see. */
const visible = new Set([
  'actor',
  'api_key',
  'organization',
  'entity',
  'entity_fingerprint',
  'webhook_subscription',
  'webhook_delivery',
]);

/** What was written: the kind of a new record that can be seen, or `event`. */
let written: string[] = [];
let choose: ChooseFault = () => null;

const records = new MemoryRecordStore();
const ledgers = new MemoryLedgerStore(() => systemClock.now());
const append = ledgers.append.bind(ledgers);
ledgers.append = async (claim, entries) => {
  await append(claim, entries);
  written.push(...entries.map(() => 'event'));
};
const node = await runFaultyNode({
  choose: (operation) => choose(operation),
  ledgers,
  records: recordsWith(records, {
    put: async (write) => {
      const put = await records.put(write);
      if (put.ok && write.replaces === 'absent' && visible.has(write.kind)) written.push(write.kind);
      return put;
    },
  }),
});
afterAll(() => node[Symbol.asyncDispose]());

const post = (path: string, headers: Readonly<Record<string, string>>, body: Fields) =>
  done(node.base, 'POST', path, { headers, body });

const order = await newOrder(node.base);
const webhook = await post('/v1/webhooks', order.buyer.bearer, { url: 'https://receiver.invalid/' });
const webhookId = webhook.text('id');

/** A request; each is for a thing of its own. */
interface Request {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Fields;
}

const calls: readonly (readonly [name: string, make: () => Request])[] = [
  [
    'registering a developer',
    () => ({ path: '/v1/developer/register', headers: {}, body: { name: 'n', email: 'a@example.com', region: 'eu' } }),
  ],
  ['making an API key', () => ({ path: '/v1/developer/keys', headers: order.buyer.bearer, body: { name: 'n' } })],
  ['making an actor', () => ({ path: '/v1/actors', headers: {}, body: {} })],
  [
    'onboarding an organization',
    () => ({ path: '/v1/onboarding/organization', headers: order.buyer.bearer, body: onboarding }),
  ],
  [
    'onboarding an entity',
    () => ({
      path: '/v1/entities/onboard',
      headers: order.buyer.bearer,
      body: { entity_type: 'TRUCK', unique_id: randomUUID(), display_name: 'A truck' },
    }),
  ],
  [
    'opening a ledger',
    () => ({ path: '/v1/ledgers', headers: order.buyer.bearer, body: { supplier_svc_id: order.supplier.svcId } }),
  ],
  [
    'opening an engagement',
    () => ({
      path: '/v1/engagements',
      headers: order.buyer.bearer,
      body: { counterparty_actor_id: order.supplier.actorId, purpose: 'AUDIT' },
    }),
  ],
  [
    'making a master',
    () => {
      const body = { ledger_id: order.ledgerId, business_ref: randomUUID(), scope: 'ORDER' };
      const headers = signedBy(order.buyer, 'TRACELEDGER_MASTER_CREATED', order.ledgerId, body);
      return { path: '/v1/traceledger/master', headers, body };
    },
  ],
  [
    'subscribing',
    () => ({ path: '/v1/webhooks', headers: order.buyer.bearer, body: { url: 'https://receiver.invalid/' } }),
  ],
  ['testing a webhook', () => ({ path: `/v1/webhooks/${webhookId}/test`, headers: order.buyer.bearer })],
];

const comesBack = ['comes back at once', 'stays away'] as const;
const failures: readonly (readonly [StoreOperation, StoreFault])[] = [
  ['record-write', 'unavailable'],
  ['record-write', 'lost'],
  ['record-write', 'applied'],
  ['record-read', 'unavailable'],
  ['read', 'unavailable'],
];

/**
 * At the nth of these operations (from 0 on) the store goes away, in this way, and stays away or comes back at once.
 */
function goesAway(nth: number, of: StoreOperation, fault: StoreFault, stays: boolean) {
  let seen = 0;
  const choose: ChooseFault = (operation) => {
    if (operation === 'append' || operation === 'claim' || operation === 'snapshot') return null;
    if (operation === of) seen += 1;
    if (seen <= nth) return null;
    if (operation === of && seen === nth + 1) return fault;
    return stays ? 'unavailable' : null;
  };
  return { choose, isReached: () => seen > nth };
}

async function send({ path, headers, body }: Request, key: string | null): Promise<RestAnswer> {
  const keyed = key === null ? headers : { ...headers, 'idempotency-key': key };
  return rest(node.base, 'POST', path, { headers: keyed, ...(body === undefined ? {} : { body }) });
}

describe.each(calls)('%s', (_name, make) => {
  test.each(failures.flatMap((failure) => comesBack.map((back) => [...failure, back] as const)))(
    'with a failing %s (%s) of a store that %s, unavailable means that nothing was written, and a retry finishes',
    async (operation, fault, back) => {
      written = [];
      expect((await send(make(), null)).status).toBe(200);
      const whole = written.toSorted();
      expect(whole).not.toEqual([]);
      const isKeyed = Object.keys(make().headers).length > 0;
      for (const key of isKeyed ? [null, randomUUID()] : [null]) {
        for (let nth = 0; ; nth++) {
          const request = make();
          const used = key === null ? null : `${key}-${nth}`;
          const away = goesAway(nth, operation, fault, back === 'stays away');
          written = [];
          choose = away.choose;
          const answer = await send(request, used);
          choose = () => null;
          const what = `${operation} ${nth}: ${answer.status} ${answer.raw}, written: ${written.join()}`;
          if (answer.status === 200) expect(written.toSorted(), what).toEqual(whole);
          else expect(['unavailable', 'outcome_unknown'], what).toContain(answer.code);
          if (answer.code === 'unavailable') expect(written, what).toEqual([]);
          if (answer.status !== 200 && used !== null) {
            const again = await send(request, used);
            // A claim that could not be written again, or may stand, is found running until its time is up.
            if (again.code !== 'idempotency_in_progress')
              expect([again.status, written.toSorted()], what).toEqual([200, whole]);
          }
          if (!away.isReached()) break;
        }
      }
    },
  );
});
