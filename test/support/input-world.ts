import { restRoutes } from '../../src/rpc/endpoints/routes.ts';
import { accessRequests } from './access-calls.ts';
import { type AccessRow, accessRows } from './access-matrix.ts';
import { apiMethods, methodNamed, restCall } from './access-transports.ts';
import { type AccessWorld, newAccessWorld } from './access-world.ts';
import { usedKey } from './input-rules.ts';
import type { KeyedWorld } from './input-signatures.ts';
import { newOrganization } from './organizations.ts';
import { newDevice, newMaster, newOrder } from './parties.ts';
import { done, type Fields } from './parties-rest.ts';

type Headers = Readonly<Record<string, string>>;

/** A call that succeeds. */
export interface GoodCall {
  readonly fields: Fields;
  readonly headers: Headers;
}

interface InputWorld {
  readonly base: string;
  readonly world: AccessWorld;
  readonly keyed: KeyedWorld;
  /** Of each method of the API. */
  readonly good: ReadonlyMap<string, GoodCall>;
  /** Of each row of the matrix that reads. */
  readonly reads: readonly Read[];
}

interface Read extends GoodCall {
  readonly name: string;
  readonly method: string;
}

export async function newInputWorld(base: string): Promise<InputWorld> {
  const world = await newAccessWorld(base);
  const order = await newOrder(base);
  const { organizationId } = await newOrganization(base, order.buyer);
  const entity = (await newDevice(base, { keyed: true })).headers;
  await done(base, 'POST', '/v1/developer/keys', {
    headers: { ...world.party.bearer, 'idempotency-key': usedKey },
    body: { name: 'first' },
  });
  const good = new Map<string, GoodCall>();
  for (const method of apiMethods.keys()) {
    const row = accessRows.find((one) => one.method === method && callerOf(one) !== null);
    if (row !== undefined) good.set(method, await goodCall(world, row));
  }
  const reads: Read[] = [];
  for (const row of accessRows.filter(isCompared)) {
    const { name, method } = row;
    reads.push({ name, method, ...(await goodCall(world, row)) });
  }
  return {
    base,
    world,
    keyed: { order, master: await newMaster(order), organizationId, entity },
    good,
    reads,
  };
}

function callerOf(row: AccessRow): 'party' | 'entity' | null {
  return row.expected.party === 'ok' ? 'party' : row.expected.entity === 'ok' ? 'entity' : null;
}

async function goodCall(world: AccessWorld, row: AccessRow): Promise<GoodCall> {
  const caller = callerOf(row);
  if (caller === null) throw new Error(`nobody may call ${row.name}`);
  const fields = (await accessRequests[row.method]?.({ world, row, caller, succeeds: true })) ?? {};
  return { fields, headers: world.headers[caller] };
}

/** Not of a world alone, or told otherwise at each call. */
const notCompared = new Set([
  'HealthService.GetHealth',
  'HealthService.GetTerms',
  // Refused calls are noted there.
  'AuditService.ListAccessEvents',
  // Made and tried in their own time.
  'WebhookService.ListWebhookDeliveries',
  // Of everybody: where other tests use the same service, these change.
  ...(process.env.TEST_CLUSTER_ADDRESSES === undefined
    ? []
    : ['ActorService.ListNetworkActors', 'EntityService.ListEntities']),
]);

function isCompared(row: AccessRow): boolean {
  const method = methodNamed(row.method);
  const isRead = restRoutes().some((route) => route.method === method && route.httpMethod === 'GET');
  return isRead && method.methodKind === 'unary' && !notCompared.has(row.method) && callerOf(row) !== null;
}

/** All that the API shows of the world, by what was asked: whatever is written shows there. */
export async function shownOf({ base, reads, keyed }: InputWorld): Promise<Readonly<Record<string, string>>> {
  const shown: Record<string, string> = {};
  for (const { name, method, fields, headers } of reads) {
    const { input } = methodNamed(method);
    const widest = Object.entries(all).filter(([field]) => input.fields.some((known) => known.name === field));
    const call = restCall(method, { ...fields, ...Object.fromEntries(widest) });
    shown[name] = (await done(base, call.method, call.path, { headers })).raw;
  }
  const { buyer, ledgerId } = keyed.order;
  for (const path of [`/v1/ledgers/${ledgerId}/events?order=desc`, `/v1/actors/${buyer.actorId}/keys`])
    shown[path] = (await done(base, 'GET', path, buyer)).raw;
  return shown;
}

/** Of what is longer than a page, the newest: that is where something new stands. */
const all: Fields = { limit: 1_000, order: 'desc', include_revoked: true, at: '2999-01-01T00:00:00Z' };
