import { createHash } from 'node:crypto';
import { canonicalize } from 'json-canonicalize';
import { expect, test } from 'vitest';
import { nodeWithOrder } from '../support/node-for-tests.ts';
import { append, closeOf, eventsOf, newMaster } from '../support/parties.ts';
import { done, type Fields } from '../support/parties-rest.ts';

const { node, order } = await nodeWithOrder();

const masters = [await newMaster(order), await newMaster(order)];
for (let n = 0; n < 12; n += 1) {
  const payload = { n, text: 'é\u2028', ratio: 0.1, caused_by_hash: n % 3 === 0 ? 'ab'.repeat(32) : null };
  const chain = JSON.stringify([{ actor_id: order.buyer.actorId, actor_type: 'human', role: 'CLERK' }]);
  const options = n % 4 === 0 ? { headers: { 'x-delivery-chain': chain } } : {};
  const master = masters[n % 2];
  if (master !== undefined) await append(master, order.buyer, 'NOTED', payload, options);
}
const { path, headers } = closeOf(order, order.buyer);
await done(node.base, 'PATCH', path, { headers });
const events = await eventsOf(node.base, order.supplier, order.ledgerId);

const hashOf = (...parts: (string | Buffer)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** The content as docs/verifying.md words it, from what a read shows. */
function contentOf(event: Fields, masterPrevHash: string): Fields {
  const hex = (value: unknown) => (value === null ? null : hashOf(canonicalize(value)).toString('hex'));
  return {
    actor_id: event.actor_id,
    actor_sig: event.actor_sig,
    actor_sig_payload_hash: hex(event.actor_sig_payload),
    actor_type: event.actor_type,
    caused_by_hash: event.caused_by_hash,
    created_at: event.created_at,
    event_type: event.event_type,
    id: event.id,
    ledger_id: event.ledger_id,
    master: event.master_id === null ? null : { id: event.master_id, prev_hash: masterPrevHash, seq: event.master_seq },
    payload_hash: hex(event.payload),
    seq: event.seq,
    signing_key_id: event.signing_key_id,
  };
}

test('every hash follows from the fields of a read by the published formula', () => {
  expect(events).toHaveLength(17);
  const lastOfMaster = new Map<unknown, string>();
  let previous: Buffer = Buffer.alloc(0);
  for (const event of events) {
    const content = hashOf(canonicalize(contentOf(event, lastOfMaster.get(event.master_id) ?? '')));
    expect([event.seq, content.toString('hex')]).toEqual([event.seq, event.content_hash]);
    previous = hashOf('svc-event-v1\0', previous, content);
    expect([event.seq, previous.toString('hex')]).toEqual([event.seq, event.hash]);
    lastOfMaster.set(event.master_id, String(event.content_hash));
  }
});

test('times never go back, and each id holds the time of its event', () => {
  const times = events.map((event) => String(event.created_at));
  expect(times).toEqual(times.toSorted());
  for (const event of events) {
    const ms = Number.parseInt(String(event.id).replaceAll('-', '').slice(0, 12), 16);
    expect(new Date(ms).toISOString()).toBe(event.created_at);
  }
});

test('a read shows neither the previous hash nor the origin of a call', () => {
  const raw = JSON.stringify(events);
  for (const name of [
    'prev_hash',
    'previous_hash',
    'ip',
    'ip_address',
    'user_agent',
    'annotations',
    'commands',
    'api_key_id',
  ]) {
    expect(raw).not.toContain(`"${name}"`);
  }
});
