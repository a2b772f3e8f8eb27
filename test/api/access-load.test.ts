import { afterAll, expect, test } from 'vitest';
import { type Answered, appendOver, type Sent, sendAtOnce, transports } from '../support/access-load.ts';
import { grpcClient } from '../support/grpc-client.ts';
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
const grpc = grpcClient(node.grpcAddress);
afterAll(() => grpc.close());

const appendsEach = 25;
/** How often each comes and goes while appends are under way. */
const timesChanged = 4;

test('200 appends beside changing grants make one chain with no append behind an answered revocation', async () => {
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
  const delegateAt = (n: number) => delegates[n] as Party;
  const requestChange = (method: 'POST' | 'PATCH', n: number) => {
    const { scope, on } = scopeOf(n);
    const body = { ...on, delegate_actor_id: delegateAt(n).actorId, ...(method === 'POST' ? { role: 'OPS' } : {}) };
    return rest(base, method, grantPath(scope), owner, body);
  };
  const change = async (method: 'POST' | 'PATCH', n: number) => {
    expect(await requestChange(method, n)).toMatchObject({ code: null });
  };
  for (const n of delegates.keys()) await change('POST', n);

  const actors = [order.buyer, order.supplier, ...delegates];
  // One is out before the first is sent, and for good.
  const gone = delegateAt(4);
  await change('PATCH', 4);
  // Two come and go as fast as it is answered, one on the ledger and one on a master. What they append here begins
  // after the answer to the
  // one change and is answered before the other is asked for: there is no doubt what is to become of it.
  const changed = [0, 2];
  const whileOut: Answered[] = [];
  const whileIn: Answered[] = [];
  const appendOnce = (transport: (typeof transports)[number], n: number) =>
    appendOver(grpc, transport, delegateAt(n), [masterAt(n), { transport }]);
  const goAndCome = async (n: number) => {
    await change('PATCH', n);
    whileOut.push(...(await Promise.all(transports.map((transport) => appendOnce(transport, n)))));
    await change('POST', n);
    whileIn.push(await appendOnce('rest', n));
  };
  // Until they have done so several times they append on beside that, and so do those from whom nothing is taken: each
  // has one under way at any moment, and who comes and goes has three.
  let hasChanged = false;
  const goesAndComes = async (n: number) => {
    for (let time = 0; time < timesChanged; time++) await goAndCome(n);
    await change('PATCH', n);
  };
  const steady = [order.buyer, order.supplier, ...delegates.filter((_, n) => n % 2 === 1)];
  const appendedOn: Sent[] = [];
  const appendsOn = async (actor: Party, at: number) => {
    const master = masterAt(at < 2 ? at : delegates.indexOf(actor));
    for (let n = 0; !hasChanged; n++) {
      const answer = await appendOver(grpc, transports[n % transports.length] ?? 'rest', actor, [master, { on: n }]);
      appendedOn.push({ actorId: actor.actorId, ...answer });
    }
  };
  // Before that, changes of the one are sent among the appends, in the same turn, whatever becomes of them.
  const sentBetween: Promise<unknown>[] = [];
  const changesAll = async () => {
    await Promise.all(sentBetween);
    await change('POST', 0);
    await goesAndComes(0);
  };
  const sent = sendAtOnce(
    grpc,
    actors,
    appendsEach,
    (at, n) => [at < 4 ? masterAt(n) : masterAt(at - 2), { at, n }],
    (n) => {
      if (n % 6 === 4) sentBetween.push(requestChange(n % 12 === 4 ? 'PATCH' : 'POST', 0));
    },
  );
  const changes = Promise.all([changesAll(), goesAndComes(2)]).finally(() => {
    hasChanged = true;
  });
  const sentOn = [...steady, ...changed.flatMap((n) => transports.map(() => delegateAt(n)))].map(appendsOn);
  expect(sent).toHaveLength(200);
  const [answersAtOnce] = await Promise.all([Promise.all(sent), changes, ...sentOn]);
  const answers = [...answersAtOnce, ...appendedOn];

  const accepted = answers.filter(({ code }) => code === null);
  expect(accepted.length).toBeGreaterThan(appendsEach * 4);
  expect([...new Set(answers.map(({ code }) => code))].filter((code) => code !== null && code !== 'not_found')).toEqual(
    [],
  );
  const codesOf = ({ actorId }: Party) => answers.filter((one) => one.actorId === actorId).map(({ code }) => code);
  for (const actor of steady) expect(new Set(codesOf(actor))).toEqual(new Set([null]));
  // What begins after an answered revocation is refused, whatever is under way; what begins after an answered grant is
  // recorded.
  expect(whileOut.map(({ code }) => code)).toEqual(whileOut.map(() => 'not_found'));
  expect(whileIn.map(({ code }) => code)).toEqual(whileIn.map(() => null));
  const timesOut = changed.length * timesChanged;
  expect([whileOut.length, whileIn.length]).toEqual([transports.length * timesOut, timesOut]);
  expect(codesOf(gone)).toEqual(Array(appendsEach).fill('not_found'));

  const events = await eventsOf(base, order.buyer, order.ledgerId);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at));
  const loaded = events.filter(({ event_type }) => event_type === 'NOTED');
  expect(loaded.map(({ id, seq, hash }) => [seq, id, hash])).toEqual(
    [...accepted, ...whileIn]
      .map(({ recorded }) => recorded)
      .toSorted((one, other) => Number(one?.[0]) - Number(other?.[0])),
  );

  // The chain itself: every append of a delegate stands between a grant of its own and that grant's end.
  const held = new Set<string>();
  for (const { event_type, payload, actor_id, master_id } of events) {
    const { delegate_actor_id, traceledger_master_id } = payload as Fields;
    const link = `${delegate_actor_id} ${traceledger_master_id ?? 'ledger'}`;
    if (String(event_type).endsWith('_GRANTED')) held.add(link);
    if (String(event_type).endsWith('_REVOKED')) held.delete(link);
    if (event_type !== 'NOTED' || actor_id === order.buyer.actorId || actor_id === order.supplier.actorId) continue;
    expect([held.has(`${actor_id} ledger`), held.has(`${actor_id} ${master_id}`)]).toContain(true);
  }

  // Who was revoked last is out, over all masters.
  for (const [n, delegate] of delegates.entries()) {
    const answer = await append(masterAt(n), delegate, 'LATE', {});
    expect(answer.code).toBe(n % 2 === 0 ? 'not_found' : null);
  }
  for (const { uuid } of masters) {
    const read = await rest(base, 'GET', `/v1/traceledger/master/${uuid}/events?limit=1000`, order.buyer);
    expect(read.body.integrity).toEqual({ verified: true, issues: [] });
    expect(read.rows('events').map(({ master_seq }) => master_seq)).toEqual(read.rows('events').map((_, at) => at));
  }
});
