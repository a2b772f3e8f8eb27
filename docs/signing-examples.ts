import { publicKeyBase64 } from '../src/client/signing/signing.ts';
import { canonicalJson } from '../src/domain/json/canonical.ts';
import { platformCrypto } from '../src/domain/keys/crypto.ts';
import { sha256Hex } from '../src/domain/keys/hash.ts';
import { toHex } from '../src/domain/keys/hex.ts';
import { actorKid, sigDigest } from '../src/domain/keys/signature.ts';
import { Auth } from '../src/gen/svc/v1/options_pb.ts';
import { rpcPathOf } from '../src/rpc/endpoints/endpoint.ts';
import { apiServices, methodRule, restRoutes } from '../src/rpc/endpoints/routes.ts';

/** The made parts of docs/signing.md. Ids, keys and times are fixed. */

const idOf = (end: string) => `0193a000-0000-7000-8000-${end.padStart(12, '0')}`;
const supplier = idOf('a');
const buyer = idOf('b');
const delegate = idOf('d');
const device = idOf('e');
const order = idOf('1');
const facilityRoot = idOf('2');
const engagement = idOf('3');
const entityRoot = idOf('4');
const orderMaster = idOf('aa');
const engagementMaster = idOf('ab');
const organization = idOf('f1');
const entity = idOf('e1');

const seeds = { supplier: '01'.repeat(32), device: '02'.repeat(32) };
const actors = { supplier, device };
type SignerName = keyof typeof seeds;

const timestamp = '2026-03-01T08:00:00.000Z';

/** What GENESIS of each ledger says. */
const ledgers: readonly (readonly [ledgerId: string, genesis: object])[] = [
  [
    order,
    {
      ledger_type: 'ORDER',
      buyer_actor_id: buyer,
      supplier_actor_id: supplier,
      supplier_organization_id: organization,
    },
  ],
  [facilityRoot, { ledger_type: 'FACILITY_ROOT', organization_id: organization, primary_actor_id: supplier }],
  [
    engagement,
    {
      ledger_type: 'ENGAGEMENT',
      primary_actor_id: device,
      counterparty_actor_id: supplier,
      entity_id: entity,
      purpose: 'SERVICE',
    },
  ],
  [
    entityRoot,
    { ledger_type: 'ENTITY_ROOT', primary_actor_id: device, counterparty_actor_id: device, entity_id: entity },
  ],
];
const masters = [
  [orderMaster, order, 'PO-2026-0042', 'ORDER'],
  [engagementMaster, engagement, 'SVC-7', 'SERVICE'],
] as const;

interface Example {
  readonly title: string;
  /** `Service.Method` */
  readonly method: string;
  readonly by: SignerName;
  /** Verb and path. */
  readonly call: string;
  readonly body?: object | string;
  readonly eventType: string;
  readonly ledgerId: string;
  readonly signed: object;
  readonly headers?: Readonly<Record<string, string>>;
}

const closing = (ledgerId: string, ledger_type: string) => ({
  ledger_id: ledgerId,
  ledger_type,
  requested_by_actor_id: supplier,
  status: 'CLOSED',
});

const payload = { note: 'Müller & Söhne <dock 7>', pallets: 4, weight: 12.5 };
const injected = {
  traceledger_master_uuid: orderMaster,
  business_ref: 'PO-2026-0042',
  scope: 'ORDER',
  buyer_actor_id: buyer,
  supplier_actor_id: supplier,
};

/** A grant and its revocation. `named` is the object, `id` its field in the request. */
function delegationExamples(scope: string, eventTypes: string, ledgerId: string, named: object, id: object): Example[] {
  const service = `DelegationService.`;
  const call = `/v1/delegation/${scope}`;
  const grant = { delegate_actor_id: delegate, role: 'AUDITOR', permissions: { access: 'read' } };
  const name = `${scope.charAt(0).toUpperCase()}${scope.slice(1)}Delegation`;
  const common = { by: 'supplier', ledgerId } as const;
  return [
    {
      ...common,
      title: `Grant at ${scope} scope`,
      method: `${service}Grant${name}`,
      call: `POST ${call}`,
      body: { ...id, ...grant },
      eventType: `${eventTypes}_GRANTED`,
      signed: { ...named, ...grant },
    },
    {
      ...common,
      title: `Revoke at ${scope} scope`,
      method: `${service}Revoke${name}`,
      call: `PATCH ${call}`,
      body: { ...id, delegate_actor_id: delegate },
      eventType: `${eventTypes}_REVOKED`,
      signed: { ...named, delegate_actor_id: delegate },
    },
  ];
}

function entityRequest(title: string, method: string, call: string, body: string | Buffer): Example {
  const [verb = '', path = ''] = call.split(' ');
  return {
    title,
    method,
    by: 'device',
    call,
    ...(body.length === 0 ? {} : { body: typeof body === 'string' ? body : `0x${body.toString('hex')}` }),
    eventType: 'ENTITY_REQUEST',
    ledgerId: device,
    signed: { method: verb, path, body_hash: sha256Hex(body), timestamp },
    headers: { 'X-ACTOR-ID': device, 'X-ACTOR-TYPE': 'device', 'X-Timestamp': timestamp },
  };
}

const made = { ledger_id: order, business_ref: 'PO-2026-0042', scope: 'ORDER' };
const accessBody = { actor_id: delegate, access: 'read', expires_at: '2026-12-31T00:00:00Z' };

const signingExamples: readonly Example[] = [
  {
    title: 'Open a master',
    method: 'MasterService.CreateMaster',
    by: 'supplier',
    call: 'POST /v1/traceledger/master',
    body: made,
    eventType: 'TRACELEDGER_MASTER_CREATED',
    ledgerId: order,
    signed: made,
  },
  {
    title: 'Append an event',
    method: 'MasterService.AppendEvent',
    by: 'supplier',
    call: `POST /v1/traceledger/master/${orderMaster}/events`,
    body: { event_type: 'SHIPMENT_DISPATCHED', payload },
    eventType: 'SHIPMENT_DISPATCHED',
    ledgerId: order,
    signed: { ...payload, ...injected },
  },
  {
    title: 'Append an event on a stream',
    method: 'MasterService.AppendEvents',
    by: 'supplier',
    call: 'POST /svc.v1.MasterService/AppendEvents',
    body: { clientIndex: '0', uuid: orderMaster, eventType: 'COUNTED', payload: '{"pallets":4}' },
    eventType: 'COUNTED',
    ledgerId: order,
    signed: { pallets: 4, ...injected },
  },
  {
    title: 'Close a master of an ORDER ledger',
    method: 'MasterService.CloseMaster',
    by: 'supplier',
    call: `PATCH /v1/traceledger/master/${orderMaster}/close`,
    eventType: 'MASTER_CLOSED',
    ledgerId: order,
    signed: {
      ...closing(order, 'ORDER'),
      traceledger_master_uuid: orderMaster,
      supplier_actor_id: supplier,
      supplier_organization_id: organization,
    },
  },
  {
    title: 'Close a master of an ENGAGEMENT ledger',
    method: 'MasterService.CloseMaster',
    by: 'supplier',
    call: `PATCH /v1/traceledger/master/${engagementMaster}/close`,
    eventType: 'MASTER_CLOSED',
    ledgerId: engagement,
    signed: {
      ...closing(engagement, 'ENGAGEMENT'),
      traceledger_master_uuid: engagementMaster,
      entity_id: entity,
    },
  },
  {
    title: 'Close an ORDER ledger',
    method: 'LedgerService.CloseLedger',
    by: 'supplier',
    call: `PATCH /v1/ledgers/${order}/close`,
    eventType: 'LEDGER_CLOSED',
    ledgerId: order,
    signed: {
      ...closing(order, 'ORDER'),
      buyer_actor_id: buyer,
      supplier_actor_id: supplier,
      supplier_organization_id: organization,
    },
  },
  {
    title: 'Close a FACILITY_ROOT ledger',
    method: 'LedgerService.CloseLedger',
    by: 'supplier',
    call: `PATCH /v1/ledgers/${facilityRoot}/close`,
    eventType: 'LEDGER_CLOSED',
    ledgerId: facilityRoot,
    signed: {
      ...closing(facilityRoot, 'FACILITY_ROOT'),
      supplier_actor_id: supplier,
      supplier_organization_id: organization,
    },
  },
  {
    title: 'Close an engagement',
    method: 'EngagementService.CloseEngagement',
    by: 'supplier',
    call: `PATCH /v1/engagements/${engagement}/close`,
    eventType: 'LEDGER_CLOSED',
    ledgerId: engagement,
    signed: closing(engagement, 'ENGAGEMENT'),
  },
  {
    title: 'Close an asset root ledger with an API key of its entity',
    method: 'EntityService.CloseRootLedger',
    by: 'device',
    call: `PATCH /v1/entities/root-ledger/${device}/close`,
    eventType: 'LEDGER_CLOSED',
    ledgerId: entityRoot,
    signed: { ...closing(entityRoot, 'ENTITY_ROOT'), requested_by_actor_id: device },
  },
  ...delegationExamples(
    'organization',
    'SUPPLIER_DELEGATION',
    facilityRoot,
    { organization_id: organization },
    { organization_id: organization },
  ),
  ...delegationExamples('ledger', 'LEDGER_DELEGATION', order, { ledger_id: order }, { ledger_id: order }),
  ...delegationExamples(
    'master',
    'MASTER_DELEGATION',
    order,
    { traceledger_master_id: orderMaster },
    { master_id: orderMaster },
  ),
  {
    title: 'Give access to a master until a time',
    method: 'MasterService.GrantMasterAccess',
    by: 'supplier',
    call: `POST /v1/traceledger/master/${orderMaster}/access`,
    body: accessBody,
    eventType: 'MASTER_DELEGATION_GRANTED',
    ledgerId: order,
    signed: {
      traceledger_master_id: orderMaster,
      delegate_actor_id: delegate,
      access: accessBody.access,
      expires_at: accessBody.expires_at,
    },
  },
  entityRequest(
    'Read as an entity',
    'MasterService.ListMasterEvents',
    `GET /v1/traceledger/master/${engagementMaster}/events?limit=10&order=desc`,
    '',
  ),
  entityRequest(
    'Write as an entity',
    'EntityService.SetArlGate',
    'PATCH /v1/entities/arl-gate',
    '{"require_arl": true}',
  ),
  entityRequest(
    'Write as an entity over gRPC or Connect',
    'EntityService.SetArlGate',
    'POST /svc.v1.EntityService/SetArlGate',
    Buffer.from('0801', 'hex'),
  ),
];

/** Markdown: the actors, ledgers and masters that the examples are about. */
export function exampleWorldTable(): string {
  const keys = (Object.keys(seeds) as SignerName[]).map((name) => {
    const publicKey = publicKeyBase64(platformCrypto.fromHex(seeds[name]));
    return `| ${name} | \`${actors[name]}\` | \`${seeds[name]}\` | \`${publicKey}\` |`;
  });
  const ids = [`| buyer | \`${buyer}\` | | |`, `| delegate | \`${delegate}\` | | |`];
  return [
    '| actor | `actor_id` | seed of its private key, hex | public key, base64 |',
    '|---|---|---|---|',
    ...keys,
    ...ids,
    '',
    '| ledger | payload of its GENESIS |',
    '|---|---|',
    ...ledgers.map(([id, genesis]) => `| \`${id}\` | \`${canonicalJson(genesis)}\` |`),
    '',
    '| master | its ledger | `business_ref` | `scope` |',
    '|---|---|---|---|',
    ...masters.map(
      ([id, ledgerId, businessRef, scope]) => `| \`${id}\` | \`${ledgerId}\` | ${businessRef} | ${scope} |`,
    ),
  ].join('\n');
}

/** Markdown: one section an example. */
export function signingExamplesText(): string {
  return signingExamples.map(exampleText).join('\n\n');
}

function exampleText(example: Example): string {
  const { title, method, by, call, body, eventType, ledgerId, headers = {} } = example;
  const canonical = canonicalJson(example.signed);
  const digest = sigDigest(eventType, ledgerId, canonical);
  const signature = platformCrypto.toBase64(platformCrypto.ed25519Signer(platformCrypto.fromHex(seeds[by]))(digest));
  const lines = Object.entries({
    Call: call,
    ...(body === undefined ? {} : { Body: typeof body === 'string' ? body : JSON.stringify(body) }),
    'Event type': eventType,
    'Ledger id': ledgerId,
    'Canonical JSON': canonical,
    'SHA-256': toHex(digest),
    ...headers,
    'X-Signing-Key-ID': actorKid(actors[by], 1),
    'X-Actor-Sig': signature,
  });
  return [
    `### ${title}`,
    '',
    `\`${method}\`, signed by the ${by}`,
    '',
    '```text',
    ...lines.map(([name, value]) => `${`${name}:`.padEnd(18)}${value}`),
    '```',
  ].join('\n');
}

/** Markdown: the calls that an entity signs as a whole, from the descriptors. */
export function entityRequestsTable(): string {
  const rows = apiServices.flatMap((service) =>
    service.methods.flatMap((method) => {
      const { auth, signed } = methodRule(method);
      if (signed || (auth !== Auth.ENTITY && auth !== Auth.BEARER_OR_ENTITY)) return [];
      const route = restRoutes().find((candidate) => candidate.method === method);
      const call = route === undefined ? '' : `\`${route.httpMethod} ${route.template}\``;
      return [`| ${call} | \`${rpcPathOf(method)}\` |`];
    }),
  );
  return ['| REST | gRPC and Connect |', '|---|---|', ...rows].join('\n');
}
