import { type CallerName, delegateNames, type TargetName } from './access-matrix.ts';
import { newOrganization } from './organizations.ts';
import { bearerOf, type Device, newDevice, newOrder, newParty, type Party } from './parties.ts';
import { done, type Fields } from './parties-rest.ts';

type Headers = Readonly<Record<string, string>>;

/** A ledger of the matrix: a master with delegates, its sibling, and a delegate whose grants are revoked. */
export interface AccessTarget {
  readonly ledgerId: string;
  readonly mine: string;
  readonly sibling: string;
  /** The link of `victim` on `mine`. */
  readonly victimLinkId: string;
}

/** All callers and objects of the matrix. Only `keyedEntityUnsigned` has a key, so that signatures play no role. */
export interface AccessWorld {
  readonly base: string;
  readonly headers: Readonly<Record<CallerName, Headers>>;
  readonly actorIds: Readonly<Partial<Record<CallerName, string>>>;
  readonly party: Party;
  /** A sandbox developer that nothing else is about. */
  readonly partner: Party;
  readonly entity: Device;
  readonly organizationId: string;
  readonly targets: Readonly<Record<TargetName, AccessTarget>>;
  /** Holds grants of all scopes that refused calls try to revoke. */
  readonly victimId: string;
}

type DelegateName = (typeof delegateNames)[number];

const expiresInMs = 300;

/** An actor that nobody knows yet, without a credential. */
export async function newActorId(base: string): Promise<string> {
  return (await done(base, 'POST', '/v1/actors', { body: {} })).text('actor_id');
}

export async function newAccessWorld(base: string): Promise<AccessWorld> {
  const unkeyed = () => newParty(base, { keyed: false });
  const [party, partner, stranger] = [await unkeyed(), await unkeyed(), await unkeyed()];
  const made = new Map<DelegateName, Party>();
  for (const name of delegateNames) made.set(name, await unkeyed());
  const delegate = (name: DelegateName): Party => {
    const found = made.get(name);
    if (found === undefined) throw new Error(`no delegate ${name}`);
    return found;
  };
  const call = (method: string, path: string, body: Fields, by: Headers = party.bearer) =>
    done(base, method, path, { headers: by, body });
  const spare = await call('POST', '/v1/developer/keys', { name: 'spare' });
  await done(base, 'DELETE', `/v1/developer/keys/${spare.text('key_id')}`, party);

  const { organizationId, frlLedgerId } = await newOrganization(base, party);
  const order = await newOrder(base, { keyed: false });
  const opened = await call('POST', '/v1/ledgers', { supplier_svc_id: order.supplier.svcId });
  const entity = await newDevice(base, { owner: party });
  const [otherEntity, keyedEntity] = [await newDevice(base), await newDevice(base, { keyed: true })];
  await call('POST', '/v1/entities/root-ledger', {}, entity.headers);
  const engagement = await call(
    'POST',
    '/v1/engagements',
    { counterparty_actor_id: party.actorId, purpose: 'SERVICE' },
    entity.headers,
  );

  const victimId = await newActorId(base);
  const grant = (scope: string, to: string, role: string, on: Fields) =>
    call('POST', `/v1/delegation/${scope}`, { ...on, delegate_actor_id: to, role });
  const organizations = { organization_id: organizationId };
  await grant('organization', delegate('organizationReader').actorId, 'AUDITOR', organizations);
  await grant('organization', delegate('organizationWriter').actorId, 'OPS', organizations);
  await grant('organization', delegate('organizationRevoked').actorId, 'OPS', organizations);
  await grant('organization', victimId, 'AUDITOR', organizations);
  await call('PATCH', '/v1/delegation/organization', {
    ...organizations,
    delegate_actor_id: delegate('organizationRevoked').actorId,
  });

  const target = async (ledger_id: string): Promise<AccessTarget> => {
    const master = async () =>
      (await call('POST', '/v1/traceledger/master', { ledger_id, business_ref: 'R-1', scope: 'ORDER' })).text('uuid');
    const [mine, sibling] = [await master(), await master()];
    await grant('ledger', delegate('ledgerReader').actorId, 'AUDITOR', { ledger_id });
    await grant('ledger', delegate('ledgerWriter').actorId, 'AGENT', { ledger_id });
    await grant('ledger', delegate('ledgerOwner').actorId, 'OWNER', { ledger_id });
    await grant('ledger', delegate('ledgerRevoked').actorId, 'OWNER', { ledger_id });
    await grant('ledger', victimId, 'AUDITOR', { ledger_id });
    const ended = { ledger_id, delegate_actor_id: delegate('ledgerRevoked').actorId };
    await call('PATCH', '/v1/delegation/ledger', ended);
    await grant('master', delegate('masterReader').actorId, 'OWNER', {
      master_id: mine,
      permissions: { access: 'read' },
    });
    await grant('master', delegate('masterWriter').actorId, 'OWNER', { master_id: mine });
    await grant('master', delegate('siblingWriter').actorId, 'OPS', { master_id: sibling });
    await grant('master', delegate('masterRevoked').actorId, 'OPS', { master_id: mine });
    const revoked = { master_id: mine, delegate_actor_id: delegate('masterRevoked').actorId };
    await call('PATCH', '/v1/delegation/master', revoked);
    const victim = await grant('master', victimId, 'OPS', { master_id: mine });
    const expires_at = new Date(Date.now() + expiresInMs).toISOString();
    const expiring = { actor_id: delegate('masterExpired').actorId, access: 'write', expires_at };
    await call('POST', `/v1/traceledger/master/${mine}/access`, expiring);
    return { ledgerId: ledger_id, mine, sibling, victimLinkId: victim.text('link_id') };
  };
  const targets = {
    order: await target(opened.text('id')),
    root: await target(frlLedgerId),
    engagement: await target(engagement.text('ledger_id')),
  };
  await new Promise((resolve) => setTimeout(resolve, expiresInMs + 20));

  const of = Object.fromEntries(delegateNames.map((name) => [name, delegate(name)])) as Record<DelegateName, Party>;
  const each = <T>(value: (party: Party) => T) =>
    Object.fromEntries(delegateNames.map((name) => [name, value(of[name])])) as Record<DelegateName, T>;
  return {
    base,
    headers: {
      ...each(({ bearer }) => bearer),
      nobody: {},
      revokedKey: bearerOf(spare.text('api_key')),
      stranger: stranger.bearer,
      party: party.bearer,
      counterparty: order.supplier.bearer,
      entity: entity.headers,
      otherEntity: otherEntity.headers,
      keyedEntityUnsigned: keyedEntity.headers,
      otherEnvironment: party.production.bearer,
    },
    actorIds: each(({ actorId }) => actorId),
    party,
    partner,
    entity,
    organizationId,
    targets,
    victimId,
  };
}
