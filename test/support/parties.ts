import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { canonicalize } from 'json-canonicalize';
import { done, type Fields, type RestAnswer, rest } from './parties-rest.ts';

/** A pair of keys made by a test, with nothing of the service's own code. */
export interface KeyPair {
  readonly privateKey: KeyObject;
  /** 32 bytes in base64. */
  readonly publicKey: string;
}

export function newKeyPair(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  return { privateKey, publicKey: raw.toString('base64') };
}

/** The signature that docs/signing.md asks for, made independently of the service's own code. */
export function signatureOf(key: KeyObject, eventType: string, ledgerId: string, payload: unknown): string {
  const message = `${eventType}\0${ledgerId}\0${canonicalize(payload)}`;
  return sign(null, createHash('sha256').update(message).digest(), key).toString('base64');
}

/** A developer's sandbox actor, with a signing key or without. */
export interface Party {
  readonly actorId: string;
  readonly svcId: string;
  readonly apiKey: string;
  readonly keyId: string;
  readonly bearer: Readonly<Record<string, string>>;
  readonly production: { readonly actorId: string; readonly bearer: Readonly<Record<string, string>> };
  /** null: no key was ever enrolled. */
  readonly kid: string | null;
  readonly key: KeyPair;
}

export async function newParty(base: string, options: { readonly keyed?: boolean } = {}): Promise<Party> {
  const key = newKeyPair();
  const keyed = options.keyed !== false;
  const made = await done(base, 'POST', '/v1/developer/register', {
    body: {
      name: 'A party',
      email: 'party@example.com',
      region: 'eu',
      ...(keyed ? { public_key: key.publicKey } : {}),
    },
  });
  const apiKey = made.text('sandbox.api_key');
  return {
    actorId: made.text('sandbox.actor_id'),
    svcId: made.text('sandbox.svc_id'),
    apiKey,
    keyId: made.text('sandbox.key_id'),
    bearer: bearerOf(apiKey),
    production: { actorId: made.text('production.actor_id'), bearer: bearerOf(made.text('production.api_key')) },
    kid: keyed ? made.text('sandbox.signing_key.kid') : null,
    key,
  };
}

export function bearerOf(apiKey: string): Record<string, string> {
  return { authorization: `Bearer ${apiKey}` };
}

/** Bearer and, of a party with a key, the signing headers. */
export function signedBy(party: Party, eventType: string, ledgerId: string, payload: unknown): Record<string, string> {
  return {
    ...party.bearer,
    ...(party.kid === null
      ? {}
      : {
          'x-signing-key-id': party.kid,
          'x-actor-sig': signatureOf(party.key.privateKey, eventType, ledgerId, payload),
        }),
  };
}

/** An ORDER ledger and its two parties. */
export interface Order {
  readonly base: string;
  readonly buyer: Party;
  readonly supplier: Party;
  readonly ledgerId: string;
}

export async function newOrder(base: string, options: { readonly keyed?: boolean } = {}): Promise<Order> {
  const [buyer, supplier] = await Promise.all([newParty(base, options), newParty(base, options)]);
  return otherOrder({ base, buyer, supplier, ledgerId: '' });
}

/** Another ledger of the same parties. */
export async function otherOrder(order: Order): Promise<Order> {
  const body = { supplier_svc_id: order.supplier.svcId };
  const made = await done(order.base, 'POST', '/v1/ledgers', order.buyer, body);
  return { ...order, ledgerId: made.text('id') };
}

/** The signed close of an order without organizations: its path and headers. */
export function closeOf({ ledgerId, buyer, supplier }: Order, by: Party) {
  const parties = { buyer_actor_id: buyer.actorId, supplier_actor_id: supplier.actorId };
  const of = { ledger_id: ledgerId, ledger_type: 'ORDER', requested_by_actor_id: by.actorId, status: 'CLOSED' };
  return {
    path: `/v1/ledgers/${ledgerId}/close`,
    headers: signedBy(by, 'LEDGER_CLOSED', ledgerId, { ...of, ...parties }),
  };
}

export interface Master {
  readonly base: string;
  readonly uuid: string;
  readonly ledgerId: string;
  /** What the service adds to every payload of this master. */
  readonly injected: Fields;
}

export async function newMaster(order: Order, by: Party = order.supplier, businessRef = 'PO-1'): Promise<Master> {
  const { base, ledgerId } = order;
  const body = { ledger_id: ledgerId, business_ref: businessRef, scope: 'ORDER' };
  const made = await done(base, 'POST', '/v1/traceledger/master', {
    headers: signedBy(by, 'TRACELEDGER_MASTER_CREATED', ledgerId, body),
    body,
  });
  return {
    base,
    uuid: made.text('uuid'),
    ledgerId,
    injected: {
      traceledger_master_uuid: made.text('uuid'),
      business_ref: businessRef,
      scope: 'ORDER',
      buyer_actor_id: order.buyer.actorId,
      supplier_actor_id: order.supplier.actorId,
    },
  };
}

interface AppendOptions {
  readonly headers?: Readonly<Record<string, string>>;
}

/** Appends, signed over the payload after injection. */
export function append(
  master: Master,
  by: Party,
  eventType: string,
  payload: Fields,
  options: AppendOptions = {},
): Promise<RestAnswer> {
  return rest(master.base, 'POST', `/v1/traceledger/master/${master.uuid}/events`, {
    headers: { ...signedBy(by, eventType, master.ledgerId, { ...payload, ...master.injected }), ...options.headers },
    body: { event_type: eventType, payload },
  });
}

/** The events of the whole ledger, page by page. */
export async function eventsOf(
  base: string,
  by: Pick<Party, 'bearer'>,
  ledgerId: string,
  query = '',
): Promise<Fields[]> {
  const events: Fields[] = [];
  for (let cursor = ''; ; ) {
    const page = await done(base, 'GET', `/v1/ledgers/${ledgerId}/events?limit=1000${query}${cursor}`, by);
    const { verified } = page.body.integrity as Fields;
    if (verified !== true) throw new Error(`integrity: ${JSON.stringify(page.body.integrity)}`);
    events.push(...page.rows('events'));
    if (page.body.next_cursor === undefined) return events;
    cursor = `&cursor=${page.text('next_cursor')}`;
  }
}

/** An entity's device that identifies itself by headers. */
export interface Device {
  readonly entityId: string;
  readonly actorId: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly kid: string;
  readonly key: KeyPair;
}

let devices = 0;

export async function newDevice(
  base: string,
  options: { readonly keyed?: boolean; readonly owner?: Party } = {},
): Promise<Device> {
  const key = newKeyPair();
  devices += 1;
  const made = await done(base, 'POST', '/v1/entities/onboard', {
    body: {
      display_name: 'A press',
      entity_type: 'MACHINE',
      unique_id: `serial-${process.pid}-${devices}-${key.publicKey}`,
      ...(options.owner === undefined ? {} : { owner_actor_id: options.owner.actorId }),
      ...(options.keyed ? { public_key: key.publicKey } : {}),
    },
  });
  const actorId = made.text('actor_id');
  return {
    entityId: made.text('entity_id'),
    actorId,
    headers: { 'x-actor-id': actorId, 'x-actor-type': 'device' },
    kid: `svc:actor:${actorId}#key-1`,
    key,
  };
}

/** The headers of an ENTITY_REQUEST: the whole request signed. */
export function entityRequest(
  device: Device,
  method: string,
  path: string,
  body: string,
  at: Date = new Date(),
): Record<string, string> {
  const timestamp = at.toISOString();
  const signed = { method, path, body_hash: createHash('sha256').update(body).digest('hex'), timestamp };
  return {
    ...device.headers,
    'x-timestamp': timestamp,
    'x-signing-key-id': device.kid,
    'x-actor-sig': signatureOf(device.key.privateKey, 'ENTITY_REQUEST', device.actorId, signed),
  };
}
