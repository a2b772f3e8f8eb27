import { rmSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import {
  newDevice,
  newKeyPair,
  newMaster,
  newOrder,
  newParty,
  type Order,
  type Party,
  signedBy,
} from '../support/parties.ts';
import { done, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';
import { temporaryDir } from '../support/running-node.ts';

const dataDir = temporaryDir();
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

/** A call that makes something, and how many of that there are. */
interface Creation {
  readonly name: string;
  readonly path: string;
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Fields;
  count(base: string): Promise<number>;
}

interface World {
  readonly order: Order;
  readonly master: string;
  readonly device: Readonly<Record<string, string>>;
  readonly friend: Party;
  readonly organizationId: string;
  readonly frl: string;
}

const onboarding = {
  legal_name: 'A',
  country: 'DE',
  vat_tax_number: '1',
  primary_email: 'a@b.de',
  terms_version: '1.0',
  declaration_hash: 'x',
};

async function prepare(base: string): Promise<World> {
  const order = await newOrder(base);
  const made = await done(base, 'POST', '/v1/onboarding/organization', {
    headers: order.buyer.bearer,
    body: onboarding,
  });
  return {
    order,
    master: (await newMaster(order)).uuid,
    device: (await newDevice(base)).headers,
    friend: await newParty(base),
    organizationId: made.text('organization_id'),
    frl: made.text('frl_ledger_id'),
  };
}

function creations(world: World, round: number): Creation[] {
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
    return await rest(base, creation.method ?? 'POST', creation.path, {
      headers: { ...creation.headers, 'idempotency-key': key },
      body: creation.body,
    });
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** Until there is an answer: a first run that died holds its key until its deadline. */
async function retried(base: string, creation: Creation, key: string): Promise<RestAnswer> {
  for (const end = Date.now() + 25_000; ; ) {
    const answer = await attempt(base, creation, key);
    if (answer !== null && answer.code !== 'idempotency_in_progress') return answer;
    if (Date.now() > end) throw new Error(`${creation.name}: ${answer?.raw}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

test('whatever the moment of the crash, a retry makes no second one and gives the same ids and secrets', {
  timeout: 90_000,
}, async () => {
  let node: NodeProcess = await startNodeProcess({ DATA_DIR: dataDir });
  const world = await prepare(node.base);
  const kinds = creations(world, 0).length;
  const unanswered = new Set<string>();
  for (let round = 0; round < 3; round += 1) {
    const list = creations(world, round);
    const { base } = node;
    const before = await Promise.all(list.map((creation) => creation.count(base)));
    const first = list.map((creation) => attempt(base, creation, `${creation.name} ${round}`));
    await new Promise((resolve) => setTimeout(resolve, 3 + 6 * round));
    await node.kill();
    const answers = await Promise.all(first);
    node = await startNodeProcess({ DATA_DIR: dataDir });
    const again = await Promise.all(list.map((creation) => retried(node.base, creation, `${creation.name} ${round}`)));
    for (const [at, creation] of list.entries()) {
      const [one, two] = [answers[at] ?? null, again[at]];
      expect([creation.name, two?.status, two?.raw]).toEqual([creation.name, 200, expect.any(String)]);
      if (one !== null) expect([creation.name, one.status, one.body]).toEqual([creation.name, 200, two?.body]);
      else unanswered.add(`${creation.name} ${round}`);
      const third = await retried(node.base, creation, `${creation.name} ${round}`);
      expect([creation.name, third.headers.get('idempotent-replayed'), third.body]).toEqual([
        creation.name,
        'true',
        two?.body,
      ]);
    }
    const after = await Promise.all(list.map((creation) => creation.count(node.base)));
    const made = (name: string) => {
      const at = list.findIndex((creation) => creation.name === name);
      return (after[at] ?? 0) - (before[at] ?? 0);
    };
    expect([made('a ledger'), made('an organization'), made('an API key'), made('a signing key')]).toEqual([
      1, 1, 1, 1,
    ]);
    // The supplier sees the round's ledger and its engagement; the ledger its master, grant and access; the root its grant.
    expect([made('an engagement'), made('a master'), made('an organization grant')]).toEqual([2, 3, 1]);
    const key = again[list.findIndex((creation) => creation.name === 'an API key')]?.text('api_key');
    expect(
      (await rest(node.base, 'GET', '/v1/developer/me', { headers: { authorization: `Bearer ${key}` } })).status,
    ).toBe(200);
  }
  // Otherwise no crash hit a call under way, and nothing was shown.
  expect(unanswered.size).toBeGreaterThanOrEqual(kinds);
  await node.kill();
});
