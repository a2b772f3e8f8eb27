import { afterAll, expect, test } from 'vitest';
import { type AppendEventResponse, MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { callGrpc, grpcClient } from '../support/door-grpc.ts';
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
import { appended, sendAll, streamed } from '../support/parties-stream.ts';

const node = await nodeForTests();
const grpc = grpcClient(node.grpcAddress);
afterAll(() => grpc.close());

const appendsEach = 25;

interface Answered {
  readonly code: string | null;
  /** seq, id and hash of what was recorded. */
  readonly recorded: readonly [unknown, unknown, unknown] | null;
}
interface Sent extends Answered {
  readonly actorId: string;
}

type Job = readonly [master: Master, payload: Fields];

async function byRest(actor: Party, [master, payload]: Job): Promise<Answered> {
  const { code, body } = await append(master, actor, 'NOTED', payload);
  return { code, recorded: code === null ? [body.seq, body.event_id, body.hash] : null };
}

async function byUnary(actor: Party, [master, payload]: Job): Promise<Answered> {
  const { clientIndex: _, signingKeyId, actorSig, ...request } = streamed(master, actor, 0, payload);
  const signed = signingKeyId === undefined ? {} : { 'x-signing-key-id': signingKeyId, 'x-actor-sig': actorSig };
  const headers = { ...actor.bearer, ...signed } as Record<string, string>;
  const { message, info } = await callGrpc(grpc, MasterService.method.appendEvent, request, headers);
  if (message === null) return { code: info?.reason ?? 'none', recorded: null };
  const { seq, eventId, hash } = message as AppendEventResponse;
  return { code: null, recorded: [Number(seq), eventId, hash] };
}

async function byStream(actor: Party, jobs: readonly Job[]): Promise<Answered[]> {
  const events = jobs.map(([master, payload], n) => streamed(master, actor, n, payload));
  const outcomes = await sendAll(grpc, actor, events);
  expect(outcomes.map(({ index }) => index)).toEqual(events.map((_, n) => n));
  return outcomes.map((outcome) => {
    if (outcome.code !== null) return { code: outcome.code, recorded: null };
    const { event } = appended(outcome);
    return { code: null, recorded: [Number(event?.seq), event?.eventId, event?.hash] };
  });
}

/** Sends so many appends of each actor in this turn, a third of them over each door; `between` is called before each round of calls. */
function sendAtOnce(
  actors: readonly Party[],
  jobOf: (at: number, n: number) => Job,
  between: (n: number) => void,
): Promise<Sent>[] {
  const sent: Promise<Sent>[] = [];
  const note = async ({ actorId }: Party, answer: Promise<Answered>): Promise<Sent> => ({ actorId, ...(await answer) });
  const rounds = Array.from({ length: appendsEach }, (_, n) => n);
  const inStream = rounds.filter((n) => n % 3 === 2);
  for (const [at, actor] of actors.entries()) {
    const outcomes = byStream(
      actor,
      inStream.map((n) => jobOf(at, n)),
    );
    for (const place of inStream.keys())
      sent.push(
        note(
          actor,
          outcomes.then((all) => all[place] as Answered),
        ),
      );
  }
  for (const n of rounds.filter((round) => round % 3 !== 2)) {
    between(n);
    const by = n % 3 === 0 ? byRest : byUnary;
    for (const [at, actor] of actors.entries()) sent.push(note(actor, by(actor, jobOf(at, n))));
  }
  return sent;
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
  const requestChange = (method: 'POST' | 'PATCH', n: number, { actorId }: Party) => {
    const { scope, on } = scopeOf(n);
    const body = { ...on, delegate_actor_id: actorId, ...(method === 'POST' ? { role: 'OPS' } : {}) };
    return rest(base, method, grantPath(scope), { headers: owner.bearer, body });
  };
  const change = async (method: 'POST' | 'PATCH', n: number, delegate: Party) => {
    expect(await requestChange(method, n, delegate)).toMatchObject({ code: null });
  };
  for (const [n, delegate] of delegates.entries()) await change('POST', n, delegate);

  const actors = [order.buyer, order.supplier, ...delegates];
  // One is out before the first is sent, and for good.
  const gone = delegates[4] as Party;
  await change('PATCH', 4, gone);
  // One comes and goes as fast as it is answered. What it appends begins after the answer to the one change and is answered before it asks
  // for the other: there is no doubt what is to become of it.
  const changed = delegates[2] as Party;
  const whileOut: Answered[] = [];
  const whileIn: Answered[] = [];
  const appendOnce = async (by: 'rest' | 'unary' | 'stream'): Promise<Answered> => {
    const job: Job = [masterAt(2), { by }];
    if (by !== 'stream') return (by === 'rest' ? byRest : byUnary)(changed, job);
    const [answer] = await byStream(changed, [job]);
    return answer as Answered;
  };
  const goAndCome = async () => {
    await change('PATCH', 2, changed);
    timesOut += isOver ? 0 : 1;
    whileOut.push(...(await Promise.all([appendOnce('rest'), appendOnce('unary'), appendOnce('stream')])));
    await change('POST', 2, changed);
    whileIn.push(await appendOnce('rest'));
  };
  let isOver = false;
  /** How often it was out before all were answered. */
  let timesOut = 0;
  await goAndCome();
  const goesAndComes = async () => {
    while (!isOver) await goAndCome();
    await change('PATCH', 2, changed);
  };
  // Of another one the changes are sent among the appends, in the same turn, whatever becomes of them.
  const inBetween = delegates[0] as Party;
  const sentBetween: Promise<unknown>[] = [];
  const sent = sendAtOnce(
    actors,
    (at, n) => [at < 4 ? masterAt(n) : masterAt(at - 2), { at, n }],
    (n) => {
      if (n === 0) sentBetween.push(goesAndComes());
      if (n % 6 === 4) sentBetween.push(requestChange(n % 12 === 4 ? 'PATCH' : 'POST', 0, inBetween));
    },
  );
  expect(sent).toHaveLength(200);
  const answers = await Promise.all(sent).finally(() => {
    isOver = true;
  });
  await Promise.all(sentBetween);
  await requestChange('PATCH', 0, inBetween);

  const accepted = answers.filter(({ code }) => code === null);
  expect(accepted.length).toBeGreaterThan(appendsEach * 4);
  expect([...new Set(answers.map(({ code }) => code))].filter((code) => code !== null && code !== 'not_found')).toEqual(
    [],
  );
  for (const [at, actor] of actors.entries()) {
    if (at < 2) expect(accepted.filter(({ actorId }) => actorId === actor.actorId)).toHaveLength(appendsEach);
  }
  // What begins after an answered revocation is refused, whatever is under way; what begins after an answered grant is recorded.
  expect(whileOut.map(({ code }) => code)).toEqual(whileOut.map(() => 'not_found'));
  expect(whileIn.map(({ code }) => code)).toEqual(whileIn.map(() => null));
  expect(timesOut).toBeGreaterThan(1);
  const ofGone = answers.filter(({ actorId }) => actorId === gone.actorId);
  expect(ofGone.map(({ code }) => code)).toEqual(Array(appendsEach).fill('not_found'));

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
    const read = await rest(base, 'GET', `/v1/traceledger/master/${uuid}/events?limit=1000`, {
      headers: order.buyer.bearer,
    });
    expect(read.body.integrity).toEqual({ verified: true, issues: [] });
    expect(read.rows('events').map(({ master_seq }) => master_seq)).toEqual(read.rows('events').map((_, at) => at));
  }
});
