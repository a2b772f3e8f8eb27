import { closedByType, delegationOfType } from '../../domain/event/service-events.ts';
import { shownName } from '../../domain/event/shown-name.ts';
import { canonicalJson } from '../../domain/json/canonical.ts';
import { SERVICE_EVENT_TYPES } from '../../domain/values/fields.ts';
import type { Event } from '../event.ts';
import type { JsonObject, JsonValue } from '../shapes.ts';
import {
  additionsTo,
  type Injected,
  injectedInto,
  isDeliveryChainRight,
  isInjectedForm,
  type KnownNames,
} from './additions.ts';

/** Event types that the authority seals and no actor signs. */
export const authorityTypes: ReadonlySet<string> = new Set([
  'GENESIS',
  'ORDER_OPENED',
  'LEDGER_CLOSED',
  'ORGANIZATION_REGISTERED',
]);

const masterTypes: ReadonlySet<string> = new Set([
  'TRACELEDGER_MASTER_CREATED',
  'MASTER_CLOSED',
  'MASTER_DELEGATION_GRANTED',
  'MASTER_DELEGATION_REVOKED',
]);
/** Types whose payload names its ledger. */
const namingLedger: ReadonlySet<string> = new Set([
  'TRACELEDGER_MASTER_CREATED',
  'MASTER_CLOSED',
  'LEDGER_CLOSED',
  'LEDGER_DELEGATION_GRANTED',
  'LEDGER_DELEGATION_REVOKED',
]);
const serviceTypes: ReadonlySet<string> = new Set(SERVICE_EVENT_TYPES);

/**
 * Whether the caller chose the event type: it is not one of the service's own twelve. All types are compared whole,
 * since callers may use one that begins or ends like one of these.
 */
export function isCallerType(eventType: string): boolean {
  return !serviceTypes.has(eventType);
}

/**
 * Says in words what contradicts itself in one event: the payload against what its actor signed, and against the place
 * that the event says it has. Hashes do not show this, because the service computes them.
 */
export function payloadFaults(event: Event, known: KnownNames): string[] {
  const injected = injectedInto(known);
  return [...placeFaults(event), ...signedFaults(event, injected), ...nameFaults(event, known, injected)];
}

function placeFaults(event: Event): string[] {
  const { payload, eventType, masterId, masterSeq } = event;
  const faults: string[] = [];
  const expect = (name: string, value: JsonValue, what: string): void => {
    if (payload[name] !== value) faults.push(`payload.${name} is not the event's ${what}`);
  };
  if ((masterId === null) !== (masterSeq === null)) faults.push('only one of master_id and master_seq is given');
  const hasMaster = isCallerType(eventType) || masterTypes.has(eventType);
  if (hasMaster !== (masterId !== null))
    faults.push(`an event of type ${eventType} ${hasMaster ? 'has a' : 'has no'} master`);
  if (masterId !== null && (eventType === 'TRACELEDGER_MASTER_CREATED') !== (masterSeq === 0)) {
    faults.push('a master begins with TRACELEDGER_MASTER_CREATED, and with nothing else');
  }
  if ((eventType === 'GENESIS') !== (event.seq === 0))
    faults.push('a ledger begins with GENESIS, and with nothing else');
  if ((event.actorId === null) !== (eventType === 'GENESIS')) faults.push('GENESIS alone has no actor');
  if ((payload.caused_by_hash ?? null) !== event.causedByHash) {
    faults.push('caused_by_hash is not the one of the payload');
  }
  if (hasMaster) {
    const isDelegation = delegationOfType(eventType) !== undefined;
    expect(isDelegation ? 'traceledger_master_id' : 'traceledger_master_uuid', masterId, 'master_id');
  }
  if (namingLedger.has(eventType)) expect('ledger_id', event.ledgerId, 'ledger_id');
  if (closedByType(eventType) !== null) {
    expect('requested_by_actor_id', event.actorId, 'actor_id');
    expect('status', 'CLOSED', 'outcome');
  }
  return faults;
}

/** A forger may write millions of members. */
const namedMax = 20;

/** Says `isWrong` of each of these members, and `areWrong` of those beyond namedMax together. */
function memberFaults(names: readonly string[], isWrong: string, areWrong: string): string[] {
  const faults = names.slice(0, namedMax).map((name) => `payload.${shownName(name)} ${isWrong}`);
  const further = names.length - namedMax;
  return further > 0 ? [...faults, `${further} further members of the payload ${areWrong}`] : faults;
}

/** Checks that the payload holds all that was signed, unchanged, and beside it only what the service adds. */
function signedFaults(event: Event, injected: Injected): string[] {
  const { payload, actorSigPayload: signed, eventType } = event;
  if (signed === null) return [];
  const changed: string[] = [];
  for (const [name, value] of Object.entries(signed)) {
    // In closings a key may be signed as null. The stored payload leaves it out.
    const absent = value === null && !Object.hasOwn(payload, name) && closedByType(eventType) !== null;
    if (!absent && !same(payload, name, value)) changed.push(name);
  }
  const additions = additionsTo(eventType, injected);
  const unsigned = Object.keys(payload).filter(
    (name) => !Object.hasOwn(signed, name) && !additions.has(name) && !isGrantDefault(event, signed, name),
  );
  const faults = [
    ...memberFaults(changed, 'is not what the actor signed', 'are not what the actor signed'),
    ...memberFaults(unsigned, 'was not signed by the actor', 'were not signed by the actor'),
  ];
  if (isCallerType(eventType) && signed.traceledger_master_uuid !== event.masterId) {
    faults.push('what the actor signed does not name the master');
  }
  return faults;
}

/** Whether the service derived this field of a grant: from a signed `access`, or as empty permissions. */
function isGrantDefault({ eventType, payload }: Event, signed: JsonObject, name: string): boolean {
  if ((name !== 'role' && name !== 'permissions') || delegationOfType(eventType)?.isGrant !== true) return false;
  const permissions = canonicalJson(payload.permissions ?? null);
  if (Object.hasOwn(signed, 'access')) {
    return name === 'role' || (name === 'permissions' && permissions === canonicalJson({ access: signed.access }));
  }
  return name === 'permissions' && permissions === '{}';
}

/** Checks what the service injects, and the delivery chain, which it alone writes. */
function nameFaults(event: Event, { master }: KnownNames, injected: Injected): string[] {
  const { masterId, eventType, payload, actorSigPayload: signed } = event;
  const faults: string[] = [];
  if (masterId === null || delegationOfType(eventType) !== undefined) return faults;
  for (const [name, value] of injected) {
    if (!Object.hasOwn(payload, name)) continue;
    if (value !== undefined && !same(payload, name, value))
      faults.push(`payload.${name} is not that of its ledger or master`);
    // An author may send any value where the service injects none, but signs it then.
    const isAdded = value === undefined && signed !== null && !Object.hasOwn(signed, name);
    if (isAdded && !isInjectedForm(name, payload[name] ?? null))
      faults.push(`payload.${name} is not of the form that the service adds`);
  }
  if (!isCallerType(eventType)) return faults;
  if (master !== null) {
    for (const name of ['business_ref', 'scope'])
      if (!Object.hasOwn(payload, name)) faults.push(`payload.${name} is missing`);
  }
  if (!isDeliveryChainRight(payload)) faults.push('payload.delivery_chain is not of the form that the service adds');
  return faults;
}

function same(payload: JsonObject, name: string, value: JsonValue): boolean {
  return Object.hasOwn(payload, name) && canonicalJson(payload[name]) === canonicalJson(value);
}
