import { actorTypes, type LedgerType } from '../../domain/event/event.ts';
import { grantAdditions, injectedActors } from '../../domain/event/service-events.ts';
import { deliveryChainItemsMax, isLabel } from '../../domain/values/fields.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import type { JsonObject, JsonValue } from '../shapes.ts';

/** What the service adds to the payload that an actor signed. */

/** Payloads with the fixed values that every event of a ledger or master repeats. null: that event was not seen. */
export interface KnownNames {
  readonly ledger: JsonObject | null;
  readonly master: JsonObject | null;
}

/** The fields that the service adds to payloads of a master. undefined: no event that shows the value was seen. */
export type Injected = ReadonlyMap<string, JsonValue | undefined>;

const masterName = 'traceledger_master_uuid';
const actorNames = ['buyer_actor_id', 'supplier_actor_id'];
const deliveryChain = 'delivery_chain';

const revokeAdditions = ['link_id', 'revoked_at'];
/** By event type, for all types of the service that an actor signs, or in which the request that it signed stands. */
const additionsByType: ReadonlyMap<string, Iterable<string>> = new Map<string, Iterable<string>>([
  ['TRACELEDGER_MASTER_CREATED', [masterName]],
  ['MASTER_CLOSED', []],
  ['LEDGER_CLOSED', ['requestor_sig', 'requestor_signing_key_id']],
  ['SUPPLIER_DELEGATION_GRANTED', grantAdditions],
  ['LEDGER_DELEGATION_GRANTED', grantAdditions],
  ['MASTER_DELEGATION_GRANTED', grantAdditions],
  ['SUPPLIER_DELEGATION_REVOKED', revokeAdditions],
  ['LEDGER_DELEGATION_REVOKED', revokeAdditions],
  ['MASTER_DELEGATION_REVOKED', revokeAdditions],
]);

/** What the service adds to all payloads of a master beside its id, as far as the events that were seen show it. */
export function injectedInto(known: KnownNames): Injected {
  return new Map<string, JsonValue | undefined>([
    ['business_ref', known.master?.business_ref],
    ['scope', known.master?.scope],
    ...injectedActorsOf(known),
  ]);
}

function injectedActorsOf({ ledger, master }: KnownNames): [string, JsonValue | undefined][] {
  if (ledger !== null) {
    const id = (name: string) => (ledger[name] ?? null) as string | null;
    const type = ledger.ledger_type as LedgerType;
    const sides = { buyerActorId: id('buyer_actor_id'), supplierActorId: id('supplier_actor_id') };
    return Object.entries(injectedActors({ type, ...sides, primaryActorId: id('primary_actor_id') }));
  }
  // The event that creates a master names the same actors as all others of it.
  if (master !== null)
    return actorNames.filter((name) => Object.hasOwn(master, name)).map((name) => [name, master[name]]);
  return actorNames.map((name) => [name, undefined]);
}

/** The names of what may stand beside the signed payload of an event. */
export function additionsTo(eventType: string, injected: Injected): ReadonlySet<string> {
  const own = additionsByType.get(eventType);
  if (own === undefined) return new Set([masterName, ...injected.keys(), deliveryChain]);
  if (eventType !== 'TRACELEDGER_MASTER_CREATED') return new Set(own);
  return new Set([...own, ...actorNames.filter((name) => injected.has(name))]);
}

/** Whether a field that was not signed, and whose value is not known, has the form of one that the service injects. */
export function isInjectedForm(name: string, value: JsonValue): boolean {
  return typeof value === 'string' && (!actorNames.includes(name) || isUuid(value));
}

/** Whether a payload has no delivery chain, or one as the service writes it. */
export function isDeliveryChainRight(payload: JsonObject): boolean {
  if (!Object.hasOwn(payload, deliveryChain)) return true;
  const chain = payload[deliveryChain];
  return Array.isArray(chain) && chain.length <= deliveryChainItemsMax && chain.every(isHand);
}

function isHand(item: JsonValue): boolean {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false;
  const { actor_id: id, actor_type: type, role, ...more } = item as JsonObject;
  if (Object.keys(more).length > 0) return false;
  const isActor = typeof id === 'string' && isUuid(id) && typeof type === 'string' && actorTypes.has(type);
  return isActor && isLabel(role);
}
