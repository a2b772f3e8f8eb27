import { inHeader, invalidField, invalidHeader, LedgerError, refusedValue } from '../../domain/errors.ts';
import { actorTypes } from '../../domain/event/event.ts';
import { byCodeUnits, canonicalString } from '../../domain/json/canonical.ts';
import {
  type AddedMember,
  type JsonNode,
  type JsonObject,
  memberOf,
  parseJson,
  parseJsonField,
  requestValuesMax,
  toValue,
} from '../../domain/json/json.ts';
import { checkHash, checkLabel, checkUuid, deliveryChainItemsMax } from '../../domain/values/fields.ts';
import { checkCanonicalBytes } from '../encoding/canonical-bytes.ts';

/** Bytes of a payload in canonical form. */
export const payloadBytesMax = 256 * 1024;
const deliveryChainDepthMax = 4;
const DELIVERY_CHAIN = 'X-Delivery-Chain';

/** A field that was left out is an empty text: it is reported as a missing object instead of broken JSON. */
export function parsePayload(text: string): JsonNode {
  if (text === '') throw refusedValue('payload', text, 'a JSON object');
  return parseJsonField(text);
}

/** Validates the payload of an append. Throws `invalid_argument`, `payload_too_large` or `reserved_field`. */
export function checkPayload(node: JsonNode): { readonly object: JsonObject; readonly causedByHash: string | null } {
  if (node.kind !== 'object') throw invalidField('payload', 'a JSON object');
  checkCanonicalBytes(node, payloadBytesMax, { field: 'payload', subject: 'A payload has' });
  if (memberOf(node, 'delivery_chain') !== undefined) {
    throw new LedgerError(
      'reserved_field',
      'delivery_chain is written by the service: send it in the header X-Delivery-Chain.',
      { field: 'payload.delivery_chain' },
    );
  }
  const cause = memberOf(node, 'caused_by_hash');
  const causedByHash =
    cause === undefined || cause.kind === 'null' ? null : checkHash('payload.caused_by_hash', toValue(cause));
  return { object: node, causedByHash };
}

/** Fields that the service adds to payloads, in canonical order. */
export type Injection = readonly (AddedMember & { readonly value: string })[];

/** Made once for each master: the canonical forms are the same for all its events. */
export function injectionOf(fields: Readonly<Record<string, string>>): Injection {
  return Object.entries(fields)
    .map(([name, value]) => ({ name, value, text: `${canonicalString(name)}:${canonicalString(value)}` }))
    .sort(byName);
}

/** Canonical order. */
export function byName(left: AddedMember, right: AddedMember): number {
  return byCodeUnits(left.name, right.name);
}

/**
 * The service's fields that were not sent, and `reserved_field` if one was sent with another value. If several were, it
 * is about the master's id if that is one of them: a signature over the id of another master proves nothing about this
 * one, so no other fact is shown.
 */
export function compareFields(
  object: JsonObject,
  injection: Injection,
): { readonly missing: AddedMember[]; readonly refusal: LedgerError | null } {
  const missing: AddedMember[] = [];
  const differing: { readonly name: string; readonly value: string }[] = [];
  for (const field of injection) {
    const sent = memberOf(object, field.name);
    if (sent === undefined) missing.push(field);
    else if (sent.kind !== 'string' || sent.value !== field.value) differing.push(field);
  }
  const [refused] = differing.toSorted((one, other) => Number(isMasterId(other)) - Number(isMasterId(one)));
  return { missing, refusal: refused === undefined ? null : reservedField(refused.name, refused.value) };
}

function isMasterId({ name }: { readonly name: string }): boolean {
  return name === 'traceledger_master_uuid';
}

function reservedField(name: string, expected: string): LedgerError {
  const message = `payload.${name} is set by the service: leave it out, or send the value in details.`;
  return new LedgerError('reserved_field', message, { field: `payload.${name}`, expected });
}

/**
 * X-Delivery-Chain: a JSON array of at most 16 {actor_id, actor_type, role}. Returns the member of the payload. An
 * event of a stream has it in a field, which may be longer than a header.
 */
export function checkDeliveryChain(text: string): AddedMember {
  const node = namedAsHeader(() => parseJson(text, deliveryChainDepthMax, requestValuesMax));
  if (node.kind !== 'array' || node.items.length > deliveryChainItemsMax) {
    throw invalidHeader(DELIVERY_CHAIN, `a JSON array of at most ${deliveryChainItemsMax} items`);
  }
  for (const [index, item] of node.items.entries()) {
    if (item.kind !== 'object' || item.members.length !== 3)
      throw invalidHeader(DELIVERY_CHAIN, 'an object of actor_id, actor_type and role', `[${index}]`);
    const name = `${DELIVERY_CHAIN}[${index}]`;
    const member = (key: string): unknown => {
      const value = memberOf(item, key);
      return value === undefined ? undefined : toValue(value);
    };
    namedAsHeader(() => {
      checkUuid(`${name}.actor_id`, member('actor_id'));
      checkLabel(`${name}.role`, member('role'));
    });
    const actorType = member('actor_type');
    if (typeof actorType !== 'string' || !actorTypes.has(actorType))
      throw invalidHeader(DELIVERY_CHAIN, `one of ${[...actorTypes].join(', ')}`, `[${index}].actor_type`);
  }
  return { name: 'delivery_chain', text: `"delivery_chain":${node.canonical}` };
}

function namedAsHeader<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof LedgerError ? inHeader(DELIVERY_CHAIN, error) : error;
  }
}
