import type { InputCase } from './input-cases.ts';
import { refusal } from './input-transports.ts';
import type { Master, Order } from './parties.ts';
import type { Fields } from './parties-rest.ts';

type Headers = Readonly<Record<string, string>>;

/** Who has keys, and so must sign. */
export interface KeyedWorld {
  readonly order: Order;
  readonly master: Master;
  readonly organizationId: string;
  readonly entity: Headers;
}

const sixtyFour = Buffer.alloc(64, 7).toString('base64');
const badSignatures = [
  '',
  '!',
  Buffer.alloc(63, 7).toString('base64'),
  Buffer.alloc(65, 7).toString('base64'),
  sixtyFour.replace('==', ''),
  sixtyFour.replace('w==', 'x=='),
  Buffer.alloc(64, 0xff).toString('base64url'),
  `${sixtyFour} ${sixtyFour}`,
  `${sixtyFour}, ${sixtyFour}`,
  // Its R is the identity point.
  Buffer.from([1, ...new Uint8Array(63)]).toString('base64'),
  // Well formed, and of nothing.
  sixtyFour,
];

/** Every signed call with invalid signatures. */
export function signatureCases({ order, master, organizationId, entity }: KeyedWorld): InputCase[] {
  const { buyer, supplier, ledgerId } = order;
  const grant = { delegate_actor_id: supplier.actorId, role: 'OPS' };
  const signed: readonly (readonly [string, Fields])[] = [
    ['LedgerService.CloseLedger', { ledger_id: ledgerId }],
    ['MasterService.CreateMaster', { ledger_id: ledgerId, business_ref: 'R', scope: 'ORDER' }],
    ['MasterService.AppendEvent', { uuid: master.uuid, event_type: 'A', payload: {} }],
    ['MasterService.CloseMaster', { uuid: master.uuid }],
    ['DelegationService.GrantOrganizationDelegation', { organization_id: organizationId, ...grant }],
    [
      'DelegationService.RevokeOrganizationDelegation',
      { organization_id: organizationId, delegate_actor_id: supplier.actorId },
    ],
    ['DelegationService.GrantLedgerDelegation', { ledger_id: ledgerId, ...grant }],
    ['DelegationService.RevokeLedgerDelegation', { ledger_id: ledgerId, delegate_actor_id: supplier.actorId }],
    ['DelegationService.GrantMasterDelegation', { master_id: master.uuid, ...grant }],
    ['DelegationService.RevokeMasterDelegation', { master_id: master.uuid, delegate_actor_id: supplier.actorId }],
  ];
  const kid = String(buyer.kid);
  const sentWith = (method: string, of: Fields, by: Headers, code: string): InputCase => ({
    method,
    change: {},
    of,
    by,
    expected: refusal(code, null),
  });
  return [
    ...signed.flatMap(([method, of]) => {
      const signatures = method === 'MasterService.AppendEvent' ? badSignatures : ['', sixtyFour];
      const named = (keyId: string, signature: string) => ({
        ...buyer.bearer,
        'x-signing-key-id': keyId,
        'x-actor-sig': signature,
      });
      return [
        sentWith(method, of, buyer.bearer, 'signature_required'),
        sentWith(method, of, { ...buyer.bearer, 'x-signing-key-id': kid }, 'signature_required'),
        ...signatures.map((signature) => sentWith(method, of, named(kid, signature), 'invalid_signature')),
        ...['', 'key-1', kid.replace(/1$/, '9'), String(supplier.kid)].map((other) =>
          sentWith(method, of, named(other, sixtyFour), 'unknown_signing_key'),
        ),
      ];
    }),
    // Nobody must sign these, but what is sent is checked.
    sentWith(
      'MasterService.GrantMasterAccess',
      { uuid: master.uuid, actor_id: supplier.actorId, access: 'read' },
      { ...buyer.bearer, 'x-signing-key-id': kid, 'x-actor-sig': sixtyFour },
      'invalid_signature',
    ),
    ...badSignatures.map((signature) => ({
      method: 'MasterService.AppendEvents',
      change: { signing_key_id: kid, actor_sig: signature },
      of: { client_index: 0, uuid: master.uuid, event_type: 'A', payload: {} },
      by: buyer.bearer,
      expected: refusal('invalid_signature', null),
    })),
    {
      method: 'ActorService.EnrollActorKey',
      change: {},
      of: { actor_id: buyer.actorId, public_key: buyer.key.publicKey },
      by: buyer.bearer,
      expected: refusal('already_exists', null),
    },
    // An entity signs its whole request.
    ...['EntityService.CreateRootLedger', 'EntityService.SetArlGate'].flatMap((method) => {
      const of = method.endsWith('Gate') ? { require_arl: true } : {};
      const now = { 'x-timestamp': new Date().toISOString() };
      return [
        sentWith(method, of, entity, 'signature_required'),
        sentWith(method, of, { ...entity, 'x-actor-sig': sixtyFour }, 'signature_required'),
        sentWith(method, of, { ...entity, 'x-actor-sig': sixtyFour, 'x-timestamp': 'now' }, 'invalid_signature'),
        sentWith(
          method,
          of,
          { ...entity, 'x-actor-sig': sixtyFour, 'x-timestamp': '2020-01-01T00:00:00Z' },
          'invalid_signature',
        ),
        ...badSignatures.map((sig) =>
          sentWith(method, of, { ...entity, ...now, 'x-actor-sig': sig }, 'invalid_signature'),
        ),
      ];
    }),
  ];
}
