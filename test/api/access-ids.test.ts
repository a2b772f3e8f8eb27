import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessRequests } from '../support/access-calls.ts';
import { type AccessRow, accessRows, type CallerName, callerNames } from '../support/access-matrix.ts';
import { type AccessTransport, apiMethods, grpcWords, hasRest, restWords } from '../support/access-transports.ts';
import { newAccessWorld } from '../support/access-world.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { isNightly } from '../support/nightly.ts';
import { nodeForTests } from '../support/node-for-tests.ts';
import { done, type Fields, rest } from '../support/parties-rest.ts';

const node = await nodeForTests();
const world = await newAccessWorld(node.base);

const unknownId = '0199aaaa-0000-7000-8000-0000000000aa';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Whom a grant is for is public: what must not show is the object. */
const publicFields = ['delegate_actor_id'];

/** By the row's name without its target. */
const knownFields: Readonly<Record<string, readonly string[]>> = {
  'MasterService.GrantMasterAccess': ['actor_id'],
  // A delegate of the sibling sees the ledger, so that the event is what must not show.
  'ProofService.GetLedgerInclusion(master)': ['ledger_id'],
};

/** The same call about objects that do not exist. */
function aboutNothing({ name: row }: AccessRow, fields: Fields): Fields {
  const keep = [...publicFields, ...(knownFields[row.replace(/@.*/, '')] ?? [])];
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      !keep.includes(name) && UUID.test(String(value)) ? unknownId : value,
    ]),
  );
}

const hidden = accessRows.filter(
  ({ method, expected }) =>
    Object.values(expected).includes('not_found') && hasRest(method) && apiMethods.get(method)?.methodKind === 'unary',
);

describe.each(['REST', 'gRPC'] as const)('foreign ids and unknown ids have the same answer over %s', (transport) => {
  let words: AccessTransport;
  let close = () => {};
  beforeAll(() => {
    const client = grpcClient(node.grpcAddress);
    words = transport === 'REST' ? restWords(node.base) : grpcWords(client);
    close = () => client.close();
  });
  afterAll(() => close());

  // In the ordinary run gRPC gets each method at one kind of ledger, by one caller.
  const isWhole = isNightly || transport === 'REST';
  const rows = hidden.filter(({ target }) => isWhole || target === null || target === 'order');

  test.each(rows)('$name', async (row) => {
    const all = callerNames.filter((caller) => row.expected[caller] === 'not_found');
    const turn = rows.indexOf(row) % all.length;
    const callers = isWhole ? all : all.slice(turn, turn + 1);
    await Promise.all(
      callers.map(async (caller) => {
        const fields = (await accessRequests[row.method]?.({ world, row, caller, succeeds: false })) ?? {};
        const nothing = aboutNothing(row, fields);
        expect(nothing).not.toEqual(fields);
        const headers = world.headers[caller];
        const [real, unknown] = [await words(row.method, fields, headers), await words(row.method, nothing, headers)];
        expect([caller, real]).toEqual([caller, unknown]);
        expect(real).toContain('not_found');
      }),
    );
  });
});

describe('a delegate of a master', () => {
  const order = () => world.targets.order;
  const as = (caller: CallerName, path: string) => done(node.base, 'GET', path, { headers: world.headers[caller] });
  const appendAs = async (caller: 'masterWriter' | 'party', master: string, payload: Fields) =>
    done(node.base, 'POST', `/v1/traceledger/master/${master}/events`, {
      headers: world.headers[caller],
      body: { event_type: 'SEEN', payload },
    });

  test('gets the same answer for a cause in a sibling as for an unknown cause', async () => {
    const { mine, sibling, ledgerId } = order();
    const cause = (await appendAs('party', sibling, { secret: 1 })).text('hash');
    const nowhere = 'ab'.repeat(32);
    const shown = async (caused_by_hash: string) => {
      const answer = await appendAs('masterWriter', mine, { caused_by_hash });
      const events = await as('masterWriter', `/v1/ledgers/${ledgerId}/events?event_id=${answer.text('event_id')}`);
      expect(events.body.integrity).toEqual({ verified: true, issues: [] });
      const [event] = events.rows('events');
      return { keys: [Object.keys(answer.body), Object.keys(event ?? {})], cause: event?.caused_by_hash };
    };
    const [known, unknown] = [await shown(cause), await shown(nowhere)];
    expect(known.keys).toEqual(unknown.keys);
    expect([known.cause, unknown.cause]).toEqual([cause, nowhere]);
  });

  test('sees no event of a sibling by any filter, order, cursor or count', async () => {
    const { mine, sibling, ledgerId } = order();
    for (let n = 0; n < 5; n += 1) {
      await appendAs('party', sibling, { n });
      await appendAs('party', mine, { n });
    }
    const path = `/v1/ledgers/${ledgerId}/events`;
    const all = (await as('party', `${path}?limit=1000`)).rows('events');
    const visible = all.filter(({ master_id }) => master_id === null || master_id === mine).map(({ id }) => id);
    const foreign = all.filter(({ master_id }) => master_id === sibling);
    expect(foreign.length).toBeGreaterThan(5);
    for (const query of ['', 'order=desc', 'event_type=SEEN', 'from_seq=3', 'from=2020-01-01T00:00:00Z', 'offset=2']) {
      const page = await as('masterReader', `${path}?limit=1000&${query}`);
      expect(page.body.count).toBe(page.rows('events').length);
      for (const event of page.rows('events')) expect(visible).toContain(event.id);
      expect(page.body.integrity).toEqual({ verified: true, issues: [] });
    }
    for (const { id } of foreign) {
      const found = (await as('masterReader', `${path}?event_id=${id}`)).body;
      expect(found).toEqual((await as('masterReader', `${path}?event_id=${unknownId}`)).body);
    }
    const paged: unknown[] = [];
    for (let cursor = ''; ; ) {
      const page = await as('masterReader', `${path}?limit=3${cursor}`);
      paged.push(...page.rows('events').map(({ id }) => id));
      if (page.body.next_cursor === undefined) break;
      cursor = `&cursor=${encodeURIComponent(page.text('next_cursor'))}`;
    }
    expect(paged).toEqual(visible);
  });

  test('sees no event of a sibling with the cursor of a party', async () => {
    const { sibling, ledgerId } = order();
    const path = `/v1/ledgers/${ledgerId}/events`;
    const { body } = await as('party', `${path}?limit=2`);
    const stolen = await rest(
      node.base,
      'GET',
      `${path}?limit=1000&cursor=${encodeURIComponent(String(body.next_cursor))}`,
      { headers: world.headers.masterReader },
    );
    const events = stolen.status === 200 ? stolen.rows('events') : [];
    expect(events.filter(({ master_id }) => master_id === sibling)).toEqual([]);
  });

  test('sees its own part only in lists of masters, members, access, snapshots, proofs and ledgers', async () => {
    const { mine, sibling, ledgerId } = order();
    const masters = await as('masterReader', `/v1/traceledger/master?ledger_id=${ledgerId}`);
    expect([masters.body.count, masters.rows('masters').map(({ uuid }) => uuid)]).toEqual([1, [mine]]);
    const others = await as('siblingWriter', `/v1/traceledger/master?ledger_id=${ledgerId}`);
    expect(others.rows('masters').map(({ uuid }) => uuid)).toEqual([sibling]);
    const access = await as('masterReader', `/v1/traceledger/master/${mine}/access`);
    expect([access.body.count, access.rows('access').map((link) => link.delegate_actor_id)]).toEqual([
      1,
      [world.actorIds.masterReader],
    ]);
    for (const path of ['/v1/delegation/snapshot', '/v1/delegation/proof', '/v1/delegation/master']) {
      const { raw } = await as('masterReader', `${path}?master_id=${mine}&limit=100`);
      expect(raw).not.toContain(sibling);
      expect(raw).not.toContain(String(world.actorIds.siblingWriter));
      expect(raw).not.toContain(String(world.actorIds.ledgerReader));
    }
    for (const role of ['buyer', 'supplier', 'primary', 'counterparty'])
      expect((await as('masterReader', `/v1/ledgers?role=${role}`)).body.count).toBe(0);
    expect((await as('masterReader', '/v1/ledgers')).body.count).toBe(3);
    expect((await as('masterReader', '/v1/ledgers?role=delegate')).body.count).toBe(3);
    for (const caller of ['ledgerRevoked', 'masterRevoked', 'masterExpired'] as const)
      expect((await as(caller, '/v1/ledgers')).body).toMatchObject({ count: 0, ledgers: [] });
  });

  test('sees its own calls only in the access history of the ledger', async () => {
    const { sibling, ledgerId } = order();
    await as('siblingWriter', `/v1/traceledger/master/${sibling}/events`);
    await as('party', `/v1/traceledger/master/${sibling}`);
    const { raw } = await as('masterReader', `/v1/audit/access?ledger_id=${ledgerId}&limit=1000`);
    expect(raw).toContain(ledgerId);
    expect(raw).not.toContain(sibling);
  });

  test('a foreign organization and an unknown organization have the same answer', async () => {
    const { partner, party, organizationId } = world;
    const open = async (by: Readonly<Record<string, string>>, fields: Fields) => {
      const answer = await rest(node.base, 'POST', '/v1/ledgers', { headers: by, body: fields });
      const error = answer.body.error as Fields;
      return { ...error, request_id: null };
    };
    for (const field of ['buyer_organization_id', 'supplier_organization_id']) {
      const real = await open(world.headers.stranger, { supplier_svc_id: partner.svcId, [field]: organizationId });
      const none = await open(world.headers.stranger, { supplier_svc_id: partner.svcId, [field]: unknownId });
      expect(real).toEqual(none);
      expect(real).toMatchObject({ code: 'invalid_argument' });
    }
    const list = (by: Readonly<Record<string, string>>, id: string) =>
      done(node.base, 'GET', `/v1/organizations?actor_id=${id}`, { headers: by });
    const other = await list(world.headers.organizationReader, party.actorId);
    expect(other.body).toEqual({ actor_id: party.actorId, count: 0, organizations: [] });
  });
});
