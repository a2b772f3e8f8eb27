import { type CrashScene, grantObject, grantOf, revocationOf, type Scope, webhookBody } from './crash-scene.ts';
import { onboarding } from './organizations.ts';
import { entityRequest, eventsOf, newKeyPair, type Party, signedBy } from './parties.ts';
import { done, type Fields, rest } from './parties-rest.ts';

type By = Pick<Party, 'bearer'>;

/** A call that changes something, and what of that is there. */
export interface CrashCall {
  readonly headers: Readonly<Record<string, string>>;
  /** For the variables of its route, in order. */
  readonly ids?: readonly string[];
  readonly body?: Fields;
  /** What it has made: nothing before it. Each ledger that is read for that is whole. */
  made(base: string): Promise<readonly Fields[]>;
  /** Where its answer has the id of that. */
  readonly id?: string;
}

/** One call for each POST, PATCH and DELETE with a credential, by its route. */
export const crashCalls: { readonly [route: string]: (scene: CrashScene) => CrashCall } = {
  'POST /v1/developer/keys': ({ joiner }) => ({
    headers: joiner.bearer,
    body: { name: 'another' },
    id: 'key_id',
    made: listed(joiner, '/v1/developer/me', 'keys', ({ name }) => name === 'another'),
  }),
  'DELETE /v1/developer/keys/{key_id}': ({ joiner, over: { keyId } }) => ({
    headers: joiner.bearer,
    ids: [keyId],
    made: async (base) => {
      const { body, rows } = await done(base, 'GET', '/v1/developer/me', joiner);
      return rows('keys').some(({ key_id }) => key_id === keyId) ? [] : [body];
    },
  }),
  'POST /v1/actors/{actor_id}/keys': ({ joiner }) => {
    const { publicKey } = newKeyPair();
    return {
      headers: joiner.bearer,
      ids: [joiner.actorId],
      body: { public_key: publicKey },
      id: 'kid',
      made: keys(joiner, ({ kid }) => !/#key-[12]$/.test(String(kid))),
    };
  },
  'PATCH /v1/actors/{actor_id}/keys/{kid}/prefer': ({ joiner }) => ({
    headers: joiner.bearer,
    ids: [joiner.actorId, 'key-2'],
    made: keys(joiner, ({ kid, preferred_signing }) => preferred_signing === true && /#key-2$/.test(String(kid))),
  }),
  'PATCH /v1/actors/{actor_id}/keys/{kid}/revoke': ({ leaver }) => ({
    headers: leaver.bearer,
    ids: [leaver.actorId, 'key-1'],
    body: { reason: 'lost' },
    made: keys(leaver, ({ revoked_reason }) => revoked_reason === 'lost'),
  }),
  'POST /v1/onboarding/organization': ({ joiner }) => onboards(joiner),
  'POST /v1/onboarding/supplier': ({ leaver }) => onboards(leaver),
  'PATCH /v1/organizations/{organization_id}/enrich': ({ order, organization: { organizationId } }) => ({
    headers: order.buyer.bearer,
    ids: [organizationId],
    body: { trade_name: 'Acme again' },
    id: 'organization_id',
    made: async (base) => {
      const found = await done(base, 'GET', `/v1/organizations/${organizationId}`, order.buyer);
      return [found.body].filter(({ trade_name }) => trade_name === 'Acme again');
    },
  }),
  'POST /v1/entities/root-ledger': ({ device: { actorId, headers } }) => ({
    headers,
    id: 'ledger_id',
    made: async (base) => {
      const root = await rest(base, 'GET', `/v1/entities/root-ledger/${actorId}`, { headers });
      return root.status === 404 ? [] : events({ bearer: headers }, root.text('ledger_id'), 'GENESIS')(base);
    },
  }),
  'PATCH /v1/entities/root-ledger/{actor_id}/close': ({ over: { device } }) => ({
    headers: device.headers,
    ids: [device.actorId],
    made: async (base) => {
      const root = await done(base, 'GET', `/v1/entities/root-ledger/${device.actorId}`, { headers: device.headers });
      return events({ bearer: device.headers }, root.text('ledger_id'), 'LEDGER_CLOSED')(base);
    },
  }),
  'PATCH /v1/entities/arl-gate': ({ gated, order }) => {
    const gate = { require_arl: true };
    const engagement = { counterparty_actor_id: order.buyer.actorId, purpose: 'SERVICE' };
    const signed = (method: string, path: string, body: Fields) => ({
      headers: entityRequest(gated, method, path, JSON.stringify(body)),
      body,
    });
    return {
      ...signed('PATCH', '/v1/entities/arl-gate', gate),
      made: async (base) => {
        const path = '/v1/engagements';
        const refused = await rest(base, 'POST', path, signed('POST', path, engagement));
        return refused.code === 'arl_required' ? [refused.body] : [];
      },
    };
  },
  'POST /v1/engagements': ({ device: { headers }, leaver }) => ({
    headers,
    body: { counterparty_actor_id: leaver.actorId, purpose: 'SERVICE' },
    id: 'ledger_id',
    made: listed(leaver, '/v1/ledgers?role=counterparty', 'ledgers'),
  }),
  'PATCH /v1/engagements/{ledger_id}/close': ({ over: { engagementId }, order: { supplier } }) => ({
    headers: supplier.bearer,
    ids: [engagementId],
    made: events(supplier, engagementId, 'LEDGER_CLOSED'),
  }),
  'POST /v1/ledgers': ({ joiner, order: { supplier } }) => ({
    headers: joiner.bearer,
    body: { supplier_svc_id: supplier.svcId },
    id: 'id',
    made: listed(joiner, '/v1/ledgers?role=buyer', 'ledgers'),
  }),
  'PATCH /v1/ledgers/{ledger_id}/close': ({ over: { order } }) => {
    const { ledgerId, buyer, supplier } = order;
    return {
      headers: signedBy(buyer, 'LEDGER_CLOSED', ledgerId, {
        ...closing(ledgerId, buyer),
        buyer_actor_id: buyer.actorId,
        supplier_actor_id: supplier.actorId,
      }),
      ids: [ledgerId],
      made: events(buyer, ledgerId, 'LEDGER_CLOSED'),
    };
  },
  'POST /v1/traceledger/master': ({ order: { ledgerId, buyer } }) => {
    const body = { ledger_id: ledgerId, business_ref: 'PO-anew', scope: 'ORDER' };
    return {
      headers: signedBy(buyer, 'TRACELEDGER_MASTER_CREATED', ledgerId, body),
      body,
      id: 'uuid',
      made: events(buyer, ledgerId, 'TRACELEDGER_MASTER_CREATED', 'PO-anew'),
    };
  },
  'POST /v1/traceledger/master/{uuid}/events': ({ order: { buyer, ledgerId }, master: { uuid, injected } }) => ({
    headers: signedBy(buyer, 'NOTED', ledgerId, { pallets: 4, ...injected }),
    ids: [uuid],
    body: { event_type: 'NOTED', payload: { pallets: 4 } },
    id: 'event_id',
    made: events(buyer, ledgerId, 'NOTED'),
  }),
  'PATCH /v1/traceledger/master/{uuid}/close': ({ order: { buyer, supplier, ledgerId }, over }) => {
    const { uuid } = over.master;
    const form = { ...closing(ledgerId, buyer), traceledger_master_uuid: uuid, supplier_actor_id: supplier.actorId };
    return {
      headers: signedBy(buyer, 'MASTER_CLOSED', ledgerId, form),
      ids: [uuid],
      made: events(buyer, ledgerId, 'MASTER_CLOSED', uuid),
    };
  },
  'POST /v1/traceledger/master/{uuid}/access': ({ order: { buyer, supplier, ledgerId }, master: { uuid } }) => ({
    headers: buyer.bearer,
    ids: [uuid],
    body: { actor_id: supplier.actorId, access: 'read' },
    id: 'link_id',
    made: events(buyer, ledgerId, 'MASTER_DELEGATION_GRANTED', `"delegate_actor_id":"${supplier.actorId}"`),
  }),
  'DELETE /v1/traceledger/master/{uuid}/access/{link_id}': ({ order, master: { uuid }, over: { linkId } }) => ({
    headers: order.buyer.bearer,
    ids: [uuid, linkId],
    made: events(order.buyer, order.ledgerId, 'MASTER_DELEGATION_REVOKED', linkId),
  }),
  'POST /v1/delegation/organization': grants('organization'),
  'PATCH /v1/delegation/organization': revokes('organization'),
  'POST /v1/delegation/ledger': grants('ledger'),
  'PATCH /v1/delegation/ledger': revokes('ledger'),
  'POST /v1/delegation/master': grants('master'),
  'PATCH /v1/delegation/master': revokes('master'),
  'POST /v1/webhooks': ({ joiner }) => ({
    headers: joiner.bearer,
    body: webhookBody,
    id: 'id',
    made: listed(joiner, '/v1/webhooks', 'subscriptions'),
  }),
  'DELETE /v1/webhooks/{id}': ({ leaver, over: { subscriptionId } }) => ({
    headers: leaver.bearer,
    ids: [subscriptionId],
    made: listed(
      leaver,
      '/v1/webhooks',
      'subscriptions',
      ({ id, active }) => id === subscriptionId && active === false,
    ),
  }),
  'POST /v1/webhooks/{id}/test': ({ leaver, webhook: { id, eventId } }) => ({
    headers: leaver.bearer,
    ids: [id],
    id: 'id',
    made: listed(leaver, `/v1/webhooks/${id}/deliveries`, 'deliveries', ({ event_id }) => event_id !== eventId),
  }),
  'POST /v1/webhooks/{id}/deliveries/{delivery_id}/redeliver': ({ leaver, webhook: { id, deliveryId, eventId } }) => ({
    headers: leaver.bearer,
    ids: [id, deliveryId],
    id: 'id',
    made: listed(
      leaver,
      `/v1/webhooks/${id}/deliveries`,
      'deliveries',
      (delivery) => delivery.event_id === eventId && delivery.id !== deliveryId,
    ),
  }),
};

function listed(by: By, path: string, list: string, isIt: (row: Fields) => boolean = () => true): CrashCall['made'] {
  return async (base) => (await done(base, 'GET', path, by)).rows(list).filter(isIt);
}

function keys(by: Party, isIt: (row: Fields) => boolean): CrashCall['made'] {
  return listed(by, `/v1/actors/${by.actorId}/keys?include_revoked=true`, 'items', isIt);
}

/** Events of a type whose payload has this text in it. */
function events(by: By, ledgerId: string, type: string, text = ''): CrashCall['made'] {
  return async (base) =>
    (await eventsOf(base, by, ledgerId)).filter(
      ({ event_type, payload }) => event_type === type && JSON.stringify(payload).includes(text),
    );
}

function onboards(by: By): CrashCall {
  return {
    headers: by.bearer,
    body: onboarding,
    id: 'organization_id',
    made: listed(by, '/v1/organizations', 'organizations'),
  };
}

function closing(ledgerId: string, by: Party): Fields {
  return { ledger_id: ledgerId, ledger_type: 'ORDER', requested_by_actor_id: by.actorId, status: 'CLOSED' };
}

function grants(scope: Scope): (scene: CrashScene) => CrashCall {
  return (scene) => {
    const { type, ledgerId } = grantObject(scene, scope);
    const made = events(scene.order.buyer, ledgerId, `${type}_GRANTED`, scene.joiner.actorId);
    return { ...grantOf(scene, scope, scene.joiner), made, id: 'link_id' };
  };
}

function revokes(scope: Scope): (scene: CrashScene) => CrashCall {
  return (scene) => {
    const { type, ledgerId } = grantObject(scene, scope);
    const made = events(scene.order.buyer, ledgerId, `${type}_REVOKED`, scene.leaver.actorId);
    return { ...revocationOf(scene, scope, scene.leaver), made, id: 'link_id' };
  };
}
