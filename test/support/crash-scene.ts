import { newOrganization, type Organization } from './organizations.ts';
import {
  type Device,
  type Master,
  newDevice,
  newKeyPair,
  newMaster,
  newOrder,
  newParty,
  type Order,
  type Party,
  signedBy,
} from './parties.ts';
import { done, type Fields } from './parties-rest.ts';

/** What stands before the calls of one crash: each of them finds something of its own to act on. */
export interface CrashScene {
  readonly order: Order;
  readonly master: Master;
  readonly organization: Organization;
  /** To be closed, revoked or ended. */
  readonly over: {
    readonly order: Order;
    readonly master: Master;
    readonly engagementId: string;
    /** Has a root ledger. */
    readonly device: Device;
    /** An API key of the joiner. */
    readonly keyId: string;
    /** An access to the master. */
    readonly linkId: string;
    /** A subscription of the leaver. */
    readonly subscriptionId: string;
  };
  /** Has nothing but itself. */
  readonly device: Device;
  /** Has no root ledger and is to ask for one; it signs its requests. */
  readonly gated: Device;
  /** Has two signing keys, `key-1` preferred, and nothing else. */
  readonly joiner: Party;
  /** Has a grant of each scope. */
  readonly leaver: Party;
  /** A subscription of the leaver with one delivery. */
  readonly webhook: { readonly id: string; readonly deliveryId: string; readonly eventId: string };
}

export async function newCrashScene(base: string): Promise<CrashScene> {
  const [order, joiner, leaver, reader] = await Promise.all([
    newOrder(base),
    newParty(base),
    newParty(base),
    newParty(base),
  ]);
  const { buyer, supplier } = order;
  const post = (path: string, headers: Readonly<Record<string, string>>, body?: Fields) =>
    done(base, 'POST', path, { headers, body });
  // Before there is an organization, of which closings of its owner's ledgers would tell.
  const opened = await post('/v1/ledgers', buyer.bearer, { supplier_svc_id: supplier.svcId });
  const [master, masterOver, organization, engagement, rooted, device, gated] = await Promise.all([
    newMaster(order),
    newMaster(order),
    newOrganization(base, buyer),
    post('/v1/engagements', buyer.bearer, { counterparty_actor_id: supplier.actorId, purpose: 'SERVICE' }),
    newDevice(base),
    newDevice(base),
    newDevice(base, { keyed: true }),
  ]);
  const scene = { order, master, organization, device, gated, joiner, leaver };
  const subscribe = async () => {
    const id = (await post('/v1/webhooks', leaver.bearer, webhookBody)).text('id');
    const ping = await post(`/v1/webhooks/${id}/test`, leaver.bearer);
    return { id, deliveryId: ping.text('id'), eventId: ping.text('event_id') };
  };
  const [webhook, ended, spare, access] = await Promise.all([
    subscribe(),
    post('/v1/webhooks', leaver.bearer, webhookBody),
    post('/v1/developer/keys', joiner.bearer, { name: 'spare' }),
    post(`/v1/traceledger/master/${master.uuid}/access`, buyer.bearer, { actor_id: reader.actorId, access: 'read' }),
    post('/v1/entities/root-ledger', rooted.headers),
    post(`/v1/actors/${joiner.actorId}/keys`, joiner.bearer, { public_key: newKeyPair().publicKey }),
    ...scopes.map((scope) => {
      const { headers, body } = grantOf(scene, scope, leaver);
      return post(`/v1/delegation/${scope}`, headers, body);
    }),
  ]);
  const over = {
    order: { ...order, ledgerId: opened.text('id') },
    master: masterOver,
    engagementId: engagement.text('ledger_id'),
    device: rooted,
    keyId: spare.text('key_id'),
    linkId: access.text('link_id'),
    subscriptionId: ended.text('id'),
  };
  return { ...scene, over, webhook };
}

/** Nobody listens there, and no event is of that type: there are no deliveries but those that are asked for. */
export const webhookBody = { url: 'http://127.0.0.1:1/', event_types: ['NOTHING'] };

const scopes = ['organization', 'ledger', 'master'] as const;
export type Scope = (typeof scopes)[number];

type Granting = Pick<CrashScene, 'order' | 'master' | 'organization'>;

/** What a grant of a scope is about: as it is sent and as it is signed, and in which ledger it is recorded. */
export function grantObject({ order, master, organization }: Granting, scope: Scope) {
  const { organizationId: organization_id, frlLedgerId } = organization;
  const { ledgerId } = order;
  switch (scope) {
    case 'organization':
      return {
        type: 'SUPPLIER_DELEGATION',
        ledgerId: frlLedgerId,
        sent: { organization_id },
        signed: { organization_id },
      };
    case 'ledger':
      return { type: 'LEDGER_DELEGATION', ledgerId, sent: { ledger_id: ledgerId }, signed: { ledger_id: ledgerId } };
    case 'master': {
      const signed = { traceledger_master_id: master.uuid };
      return { type: 'MASTER_DELEGATION', ledgerId, sent: { master_id: master.uuid }, signed };
    }
  }
}

/** The buyer's signed call that grants, or that revokes. */
export function grantOf(scene: Granting, scope: Scope, delegate: Party) {
  return delegation(scene, scope, 'GRANTED', { delegate_actor_id: delegate.actorId, role: 'OPS', permissions: {} });
}

export function revocationOf(scene: Granting, scope: Scope, delegate: Party) {
  return delegation(scene, scope, 'REVOKED', { delegate_actor_id: delegate.actorId });
}

function delegation(scene: Granting, scope: Scope, change: string, asked: Fields) {
  const { type, ledgerId, sent, signed } = grantObject(scene, scope);
  return {
    headers: signedBy(scene.order.buyer, `${type}_${change}`, ledgerId, { ...signed, ...asked }),
    body: { ...sent, ...asked },
  };
}
