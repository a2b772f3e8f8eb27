import { expect } from 'vitest';
import { newOrganization, onboarding } from './organizations.ts';
import { newDevice, newKeyPair, newMaster, newOrder, newParty, type Order, type Party, signedBy } from './parties.ts';
import { done, type Fields, type RestAnswer, rest } from './parties-rest.ts';

/** A call that makes something, and how many of that there are. */
interface Creation {
  readonly name: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Fields;
  count(base: string): Promise<number>;
}

/** Whoever makes something, and what it is made in. */
export interface CreatorsWorld {
  readonly order: Order;
  readonly master: string;
  readonly device: Readonly<Record<string, string>>;
  readonly friend: Party;
  readonly organizationId: string;
  readonly frl: string;
}

export async function newCreatorsWorld(base: string): Promise<CreatorsWorld> {
  const order = await newOrder(base);
  const { organizationId, frlLedgerId: frl } = await newOrganization(base, order.buyer);
  return {
    order,
    master: (await newMaster(order)).uuid,
    device: (await newDevice(base)).headers,
    friend: await newParty(base),
    organizationId,
    frl,
  };
}

function creations(world: CreatorsWorld, round: number): Creation[] {
  const { order, master, device, friend, organizationId, frl } = world;
  const { buyer, supplier, ledgerId } = order;
  const counting =
    (path: string, list: string, headers: Readonly<Record<string, string>> = buyer.bearer) =>
    async (base: string) =>
      (await done(base, 'GET', path, { headers })).rows(list).length;
  const events = (ledger: string) => counting(`/v1/ledgers/${ledger}/events`, 'events');
  const masterBody = { ledger_id: ledgerId, business_ref: `PO-${round}`, scope: 'ORDER' };
  const grant = {
    ledger_id: ledgerId,
    delegate_actor_id: friend.actorId,
    role: 'OPS',
    permissions: { access: 'read', round },
  };
  const orgGrant = {
    organization_id: organizationId,
    delegate_actor_id: friend.actorId,
    role: 'OPS',
    permissions: { round },
  };
  return [
    {
      name: 'a ledger',
      path: '/v1/ledgers',
      headers: buyer.bearer,
      body: { supplier_svc_id: supplier.svcId },
      count: counting('/v1/ledgers?limit=1000', 'ledgers'),
    },
    {
      name: 'an organization',
      path: '/v1/onboarding/organization',
      headers: friend.bearer,
      body: onboarding,
      count: counting('/v1/organizations?limit=1000', 'organizations', friend.bearer),
    },
    {
      name: 'an API key',
      path: '/v1/developer/keys',
      headers: buyer.bearer,
      body: { name: `key ${round}` },
      count: counting('/v1/developer/me', 'keys'),
    },
    {
      name: 'a signing key',
      path: `/v1/actors/${friend.actorId}/keys`,
      headers: friend.bearer,
      body: { public_key: newKeyPair().publicKey },
      count: counting(`/v1/actors/${friend.actorId}/keys`, 'items', {}),
    },
    {
      name: 'an engagement',
      path: '/v1/engagements',
      headers: device,
      body: { counterparty_actor_id: supplier.actorId, purpose: 'SERVICE' },
      count: counting('/v1/ledgers?limit=1000', 'ledgers', supplier.bearer),
    },
    {
      name: 'a master',
      path: '/v1/traceledger/master',
      headers: signedBy(buyer, 'TRACELEDGER_MASTER_CREATED', ledgerId, masterBody),
      body: masterBody,
      count: events(ledgerId),
    },
    {
      name: 'a ledger grant',
      path: '/v1/delegation/ledger',
      headers: signedBy(buyer, 'LEDGER_DELEGATION_GRANTED', ledgerId, grant),
      body: grant,
      count: events(ledgerId),
    },
    {
      name: 'an organization grant',
      path: '/v1/delegation/organization',
      headers: signedBy(buyer, 'SUPPLIER_DELEGATION_GRANTED', frl, orgGrant),
      body: orgGrant,
      count: events(frl),
    },
    {
      name: 'a master access',
      path: `/v1/traceledger/master/${master}/access`,
      headers: buyer.bearer,
      body: { actor_id: friend.actorId, access: round % 2 === 0 ? 'read' : 'write' },
      count: events(ledgerId),
    },
  ];
}

async function attempt(base: string, creation: Creation, key: string): Promise<RestAnswer | null> {
  try {
    return await rest(base, 'POST', creation.path, {
      headers: { ...creation.headers, 'idempotency-key': key },
      body: creation.body,
    });
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

interface Retried {
  readonly answer: RestAnswer;
  /** Whether an earlier attempt had begun to carry the call out. */
  readonly hadBegun: boolean;
}

/** Until there is an answer: a first run that died holds its key until its deadline. */
async function retried(base: string, creation: Creation, key: string, asksAgain: AsksAgain): Promise<Retried> {
  let hadBegun = false;
  for (const end = Date.now() + 25_000; ; ) {
    const answer = await attempt(base, creation, key);
    hadBegun ||= answer?.code === 'idempotency_in_progress';
    if (answer !== null && !asksAgain(answer))
      return { answer, hadBegun: hadBegun || answer.headers.get('idempotent-replayed') === 'true' };
    if (Date.now() > end) throw new Error(`${creation.name}: ${answer?.raw}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

/** Whether a call is to be sent again after this answer. */
type AsksAgain = (answer: RestAnswer) => boolean;

const isInProgress: AsksAgain = ({ code }) => code === 'idempotency_in_progress';

/**
 * When to crash in a round, in milliseconds after the calls were sent, until `isEnough`: what a machine does in a few milliseconds depends on how busy it is, so
 * that a crash may come before any call has begun, or after all were answered.
 */
export function* crashTimes(roundsMin: number, firstMs: number, isEnough: () => boolean): Generator<[number, number]> {
  const roundsMax = roundsMin + 6;
  for (let round = 0; round < roundsMin || (round < roundsMax && !isEnough()); round++)
    yield [round, Math.round(firstMs * 1.7 ** round)];
}

/** Where calls go while something crashes. */
export interface Crash {
  /** Before it. */
  readonly base: string;
  /** So many milliseconds after the calls were sent. */
  readonly afterMs: number;
  /** Crashes what carries them out, and gives where they are sent again, and where once more. */
  crash(): Promise<{ readonly again: string; readonly onceMore: string }>;
  /** If not given: while the first attempt holds their key alone. */
  readonly asksAgain?: AsksAgain;
}

/**
 * Sends a call of each kind that makes something, with a crash meanwhile, and expects that retries make no second one and give the same ids and
 * secrets; another `round` for each crash in a world. How many calls there were, how many of them got no answer the first time, and how many
 * of these the crash hit when they had begun.
 */
export async function crashAmongCreations(
  world: CreatorsWorld,
  round: number,
  { base, afterMs, crash, asksAgain = isInProgress }: Crash,
): Promise<{ readonly calls: number; readonly unanswered: number; readonly hit: number }> {
  const list = creations(world, round);
  const sentAgain = (at: string, creation: Creation) => retried(at, creation, `${creation.name} ${round}`, asksAgain);
  const before = await Promise.all(list.map((creation) => creation.count(base)));
  const first = list.map((creation) => attempt(base, creation, `${creation.name} ${round}`));
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  const { again, onceMore } = await crash();
  const answers = await Promise.all(first);
  const seconds = await Promise.all(list.map((creation) => sentAgain(again, creation)));
  for (const [at, creation] of list.entries()) {
    const { name } = creation;
    const [one, two] = [answers[at] ?? null, seconds[at]?.answer];
    expect([name, two?.status, two?.raw]).toEqual([name, 200, expect.any(String)]);
    if (one !== null && !asksAgain(one)) expect([name, one.status, one.body]).toEqual([name, 200, two?.body]);
    const { answer: third } = await sentAgain(onceMore, creation);
    expect([name, third.headers.get('idempotent-replayed'), third.body]).toEqual([name, 'true', two?.body]);
  }
  const after = await Promise.all(list.map((creation) => creation.count(again)));
  const placeOf = (name: string) => list.findIndex((creation) => creation.name === name);
  const made = (name: string) => (after[placeOf(name)] ?? 0) - (before[placeOf(name)] ?? 0);
  expect([made('a ledger'), made('an organization'), made('an API key'), made('a signing key')]).toEqual([1, 1, 1, 1]);
  // The supplier sees the round's ledger and its engagement; the ledger its master, grant and access; the root its grant.
  expect([made('an engagement'), made('a master'), made('an organization grant')]).toEqual([2, 3, 1]);
  const apiKey = seconds[placeOf('an API key')]?.answer.text('api_key');
  const me = await rest(onceMore, 'GET', '/v1/developer/me', { headers: { authorization: `Bearer ${apiKey}` } });
  expect(me.status).toBe(200);
  const inVain = seconds.filter((_, at) => answers[at] === null);
  return { calls: list.length, unanswered: inVain.length, hit: inVain.filter(({ hadBegun }) => hadBegun).length };
}
