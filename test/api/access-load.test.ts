import { expect, test } from 'vitest';
import { nodeForTests } from '../support/node-for-tests.ts';
import {
  append,
  eventsOf,
  type Master,
  newMaster,
  newOrder,
  newParty,
  type Party,
  signedBy,
} from '../support/parties.ts';
import { done, type Fields, rest } from '../support/parties-rest.ts';

const node = await nodeForTests();

const appendsEach = 25;
const rounds = 4;

interface Sent {
  readonly actorId: string;
  readonly begunMs: number;
  readonly endedMs: number;
  readonly code: string | null;
  readonly body: Fields;
}
/** When a delegate certainly had nothing: from the answer to its revocation to the request of its next grant. */
interface Without {
  readonly actorId: string;
  readonly fromMs: number;
  toMs: number;
}

test('200 appends at once by parties and delegates while grants come and go: one gapless chain, nothing after an answered revocation', async () => {
  const { base } = node;
  const order = await newOrder(base);
  const delegates = await Promise.all(Array.from({ length: 6 }, () => newParty(base, { keyed: false })));
  const masters = await Promise.all(
    Array.from({ length: 5 }, (_, n) => newMaster(order, n % 2 === 0 ? order.buyer : order.supplier, `PO-${n}`)),
  );
  // Who grants needs no key: an OWNER of the ledger.
  const owner = await newParty(base, { keyed: false });
  const grantPath = (scope: string) => `/v1/delegation/${scope}`;
  const form = { delegate_actor_id: owner.actorId, ledger_id: order.ledgerId, role: 'OWNER' };
  await done(base, 'POST', grantPath('ledger'), {
    headers: signedBy(order.buyer, 'LEDGER_DELEGATION_GRANTED', order.ledgerId, { ...form, permissions: {} }),
    body: form,
  });
  const masterAt = (n: number): Master => masters[n % masters.length] as Master;
  const scopeOf = (n: number) =>
    n < 2
      ? { scope: 'ledger', on: { ledger_id: order.ledgerId } }
      : { scope: 'master', on: { master_id: masterAt(n).uuid } };
  const change = (method: 'POST' | 'PATCH', n: number, { actorId }: Party) => {
    const { scope, on } = scopeOf(n);
    const body = { ...on, delegate_actor_id: actorId, ...(method === 'POST' ? { role: 'OPS' } : {}) };
    return done(base, method, grantPath(scope), { headers: owner.bearer, body });
  };
  for (const [n, delegate] of delegates.entries()) await change('POST', n, delegate);

  const actors = [order.buyer, order.supplier, ...delegates];
  const sent = actors.flatMap((actor, at) =>
    Array.from({ length: appendsEach }, async (_, n): Promise<Sent> => {
      const master = at < 4 ? masterAt(n) : masterAt(at - 2);
      // In waves, so that grants change meanwhile.
      await new Promise((resolve) => setTimeout(resolve, (n % 5) * 40));
      const begunMs = performance.now();
      const answer = await append(master, actor, 'LOAD', { at, n });
      return { actorId: actor.actorId, begunMs, endedMs: performance.now(), code: answer.code, body: answer.body };
    }),
  );
  const without: Without[] = [];
  const changes = delegates.map(async (delegate, n) => {
    if (n % 2 === 1) return;
    for (let round = 0; round < rounds; round += 1) {
      await change('PATCH', n, delegate);
      const gap = { actorId: delegate.actorId, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
      without.push(gap);
      await new Promise((resolve) => setTimeout(resolve, 10));
      gap.toMs = performance.now();
      await change('POST', n, delegate);
    }
    await change('PATCH', n, delegate);
    without.push({ actorId: delegate.actorId, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY });
  });
  const answers = await Promise.all(sent);
  await Promise.all(changes);

  const accepted = answers.filter(({ code }) => code === null);
  expect(accepted.length).toBeGreaterThan(appendsEach * 4);
  expect([...new Set(answers.map(({ code }) => code))].filter((code) => code !== null && code !== 'not_found')).toEqual(
    [],
  );
  for (const [at, actor] of actors.entries()) {
    if (at < 2) expect(accepted.filter(({ actorId }) => actorId === actor.actorId)).toHaveLength(appendsEach);
  }
  const late = accepted.filter(({ actorId, begunMs, endedMs }) =>
    without.some((gap) => gap.actorId === actorId && begunMs > gap.fromMs && endedMs < gap.toMs),
  );
  expect(late).toEqual([]);

  const events = await eventsOf(base, order.buyer, order.ledgerId);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at));
  const loaded = events.filter(({ event_type }) => event_type === 'LOAD');
  expect(loaded.map(({ id, seq, hash }) => [seq, id, hash])).toEqual(
    accepted
      .map(({ body }) => [body.seq, body.event_id, body.hash])
      .toSorted(([one], [other]) => Number(one) - Number(other)),
  );

  // The chain itself: every append of a delegate stands between a grant of its own and that grant's end.
  const held = new Set<string>();
  for (const { event_type, payload, actor_id, master_id } of events) {
    const { delegate_actor_id, traceledger_master_id } = payload as Fields;
    const link = `${delegate_actor_id} ${traceledger_master_id ?? 'ledger'}`;
    if (String(event_type).endsWith('_GRANTED')) held.add(link);
    if (String(event_type).endsWith('_REVOKED')) held.delete(link);
    if (event_type !== 'LOAD' || actor_id === order.buyer.actorId || actor_id === order.supplier.actorId) continue;
    expect([held.has(`${actor_id} ledger`), held.has(`${actor_id} ${master_id}`)]).toContain(true);
  }

  // Who was revoked last is out, over all masters.
  for (const [n, delegate] of delegates.entries()) {
    const answer = await append(masterAt(n), delegate, 'LATE', {});
    expect(answer.code).toBe(n % 2 === 0 ? 'not_found' : null);
  }
  for (const { uuid } of masters) {
    const read = await rest(base, 'GET', `/v1/traceledger/master/${uuid}/events?limit=1000`, {
      headers: order.buyer.bearer,
    });
    expect(read.body.integrity).toEqual({ verified: true, issues: [] });
    expect(read.rows('events').map(({ master_seq }) => master_seq)).toEqual(read.rows('events').map((_, at) => at));
  }
});
