import type { CommandKey } from '../../src/domain/event/event.ts';
import { noFacts } from '../../src/domain/event/facts.ts';
import { grantObject, grantSignedForms } from '../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import type {
  AppendEvent,
  CloseLedger,
  CloseMaster,
  CommandBase,
  CommandSignature,
  CreateMaster,
  GrantAccess,
  OpenLedger,
  RevokeAccess,
} from '../../src/domain/ledger/command.ts';

/** A UUID that is told apart at a glance. */
export function uuid(number: number): string {
  return `00000000-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
}

export const ledgerId = uuid(0x1);
export const masterId = uuid(0xaa);
export const siblingId = uuid(0xbb);
export const buyer = uuid(0xb);
export const supplier = uuid(0xa);
export const delegate = uuid(0xd);
export const stranger = uuid(0xe);

/** A deadline that does not come. */
const never = Number.MAX_SAFE_INTEGER;

type Base = Partial<CommandBase>;
export type OpeningFacts = OpenLedger['facts'];

function base(from: Base): CommandBase {
  return {
    ledgerId,
    actorId: supplier,
    actorType: 'service',
    signature: null,
    signatureRule: 'if_keyed',
    commandKeys: [],
    deadline: never,
    ...from,
  };
}

/** Facts of which only these are there. */
export function openingFacts(type: OpeningFacts['type'], present: Partial<OpeningFacts>): OpeningFacts {
  return { ...noFacts, ...present, type };
}

export const orderFacts = openingFacts('ORDER', { buyerActorId: buyer, supplierActorId: supplier });

export function openLedger(from: Partial<OpenLedger> = {}): OpenLedger {
  return {
    facts: orderFacts,
    registeredPayload: null,
    ...base({ signatureRule: 'optional', ...from }),
    kind: 'open_ledger',
    ...from,
  };
}

export function createMaster(from: Partial<CreateMaster> = {}): CreateMaster {
  return { masterId, businessRef: 'PO-1', scope: 'ORDER', ...base(from), kind: 'create_master', ...from };
}

export function append(from: Partial<AppendEvent> = {}): AppendEvent {
  return {
    masterId,
    eventType: 'SHIPMENT_DISPATCHED',
    payload: '{}',
    causedByHash: null,
    ...base(from),
    kind: 'append_event',
    ...from,
  };
}

export function closeMaster(from: Partial<CloseMaster> = {}): CloseMaster {
  return { masterId, ...base(from), kind: 'close_master', ...from };
}

export function closeLedger(from: Base = {}): CloseLedger {
  return { ...base({ signatureRule: 'optional', ...from }), kind: 'close_ledger' };
}

/** A grant at master scope, unless another one is asked for; `access` says what `permissions` holds. */
export function grant(from: Partial<GrantAccess> & { readonly access?: 'read' | 'write' } = {}): GrantAccess {
  const { access, ...given } = from;
  const scope = given.scope ?? 'master';
  const to = given.delegateActorId ?? delegate;
  const expiresAt = given.expiresAt ?? null;
  const role = given.role ?? (expiresAt === null ? 'OPS' : 'ACCESS');
  const permissions = access === undefined && expiresAt === null ? undefined : { access: access ?? 'write' };
  const object = grantObject(scope, scope === 'master' ? (given.masterId ?? masterId) : ledgerId);
  const requested =
    expiresAt === null
      ? grantSignedForms(object, to, role, permissions)[0]
      : canonicalJson({ ...object, access: access ?? 'write', delegate_actor_id: to, expires_at: expiresAt });
  return {
    linkId: uuid(0xcc),
    role,
    permissions: canonicalJson(permissions ?? {}),
    requested,
    ...base(given),
    kind: 'grant',
    ...given,
    scope,
    expiresAt,
    masterId: scope === 'master' ? (given.masterId ?? masterId) : null,
    delegateActorId: to,
  };
}

export function revoke(from: Partial<RevokeAccess> = {}): RevokeAccess {
  const scope = from.scope ?? 'master';
  return {
    delegateActorId: delegate,
    linkId: null,
    ...base(from),
    kind: 'revoke',
    ...from,
    scope,
    masterId: scope === 'master' ? (from.masterId ?? masterId) : null,
  };
}

export function commandKey(id: string, fingerprint = `asks ${id}`, permanent = false): CommandKey {
  return { id, fingerprint, permanent };
}

/** A signature as the transport hands it on; nothing behind the transport looks at its bytes. */
export function signature(keyId: string, signedForm = '{}'): CommandSignature {
  return { signature: Buffer.alloc(64, 7).toString('base64'), keyId, signedForm };
}
