import {
  accessSignedForms,
  appendAdditions,
  grantObject,
  grantSignedForms,
  masterCreatedSignedForms,
  revokeSignedForms,
} from '../../src/domain/event/service-events.ts';
import { type JsonObject, memberOf } from '../../src/domain/json/json.ts';
import { parseKid } from '../../src/domain/keys/signature.ts';
import type {
  AppendEvent,
  CloseLedger,
  CloseMaster,
  Command,
  CreateMaster,
  GrantAccess,
  OpenLedger,
  RevokeAccess,
} from '../../src/domain/ledger/command.ts';
import { isoTime, parseRfc3339 } from '../../src/domain/values/time.ts';
import { isUuid } from '../../src/domain/values/uuid-form.ts';
import { canonicalObject, UnreadableCommand } from './wire-fields.ts';

/**
 * Checks that the fields of a command agree with each other, above all that what was signed is what will be written.
 * Does not verify the signature: IncomingStream does that afterwards. Throws UnreadableCommand.
 */
export function checkConsistency(command: Command): void {
  const { signature, actorId, lane } = command;
  if (signature !== null) demand(parseKid(signature.keyId)?.actorId === actorId, 'the key is of another actor');
  if (lane) demand(lane.previous === null || lane.previous < lane.index, 'its lane runs backwards');
  switch (command.kind) {
    case 'open_ledger':
      checkOpening(command);
      break;
    case 'create_master':
      checkCreation(command);
      break;
    case 'append_event':
      checkAppend(command);
      break;
    case 'close_master':
    case 'close_ledger':
      checkClosing(command);
      break;
    case 'grant':
      checkGrant(command);
      break;
    case 'revoke':
      checkRevocation(command);
      break;
  }
}

function demand(holds: boolean, what: string): asserts holds {
  if (!holds) throw new UnreadableCommand(what);
}

/** An actor with keys must sign these commands, so no node may send one that need not be signed. */
function demandSignatureRule({ signatureRule }: Command): void {
  demand(signatureRule === 'if_keyed', 'it asks for no signature');
}

function checkOpening({ facts, registeredPayload, signature }: OpenLedger): void {
  demand(signature === null, 'the opening of a ledger is not signed');
  const { type, buyerActorId, supplierActorId, primaryActorId, counterpartyActorId, organizationId } = facts;
  const isOrder = type === 'ORDER';
  demand(isOrder === (buyerActorId !== null && supplierActorId !== null), 'an order has a buyer and a supplier');
  demand(isOrder === (primaryActorId === null), 'its type has another party');
  const hasCounterparty = type === 'ENGAGEMENT' || type === 'ENTITY_ROOT';
  demand(hasCounterparty === (counterpartyActorId !== null), 'its type has another counterparty');
  const isFacility = type === 'FACILITY_ROOT';
  demand(isFacility === (organizationId !== null), 'the root of an organization alone names one');
  demand(isFacility === (registeredPayload !== null), 'the root of an organization alone registers one');
}

function checkCreation(command: CreateMaster): void {
  demandSignatureRule(command);
  const { ledgerId, businessRef, scope, signature } = command;
  if (signature !== null)
    demand(masterCreatedSignedForms(ledgerId, businessRef, scope).includes(signature.signedForm), notSigned);
}

const notSigned = 'something else was signed';

function checkAppend(command: AppendEvent): void {
  demandSignatureRule(command);
  const { payload, signature, causedByHash, masterId } = command;
  const object = canonicalObject(payload, 'payload');
  demand((textMember(object, 'caused_by_hash') ?? null) === causedByHash, 'its payload names another cause');
  const master = memberOf(object, 'traceledger_master_uuid');
  demand(
    master === undefined || textMember(object, 'traceledger_master_uuid') === masterId,
    'its payload names another master',
  );
  if (signature === null || signature.signedForm === payload) return;
  const signed = canonicalObject(signature.signedForm, 'signedForm');
  demand(textMember(signed, 'traceledger_master_uuid') === masterId, 'what was signed does not name the master');
  demand(
    signed.members.every(({ name, value }) => memberOf(object, name)?.canonical === value.canonical) &&
      object.members.every(({ name }) => memberOf(signed, name) !== undefined || appendAdditions.has(name)),
    notSigned,
  );
}

function textMember(object: JsonObject, name: string): string | undefined {
  const member = memberOf(object, name);
  return member?.kind === 'string' ? member.value : undefined;
}

/** The ledger's owner makes the payload, so only the signed form is checked: it must name the object and the actor. */
function checkClosing(command: CloseMaster | CloseLedger): void {
  if (command.kind === 'close_master') demandSignatureRule(command);
  const { signature, ledgerId, actorId } = command;
  if (signature === null) return;
  const signed = canonicalObject(signature.signedForm, 'signedForm');
  const masterId = command.kind === 'close_master' ? command.masterId : undefined;
  demand(
    textMember(signed, 'ledger_id') === ledgerId &&
      textMember(signed, 'requested_by_actor_id') === actorId &&
      textMember(signed, 'status') === 'CLOSED' &&
      textMember(signed, 'traceledger_master_uuid') === masterId,
    notSigned,
  );
}

/** The member in which a grant names its object, by scope. */
const objectKeys = { organization: 'organization_id', ledger: 'ledger_id', master: 'traceledger_master_id' } as const;

function checkGrant(command: GrantAccess): void {
  const { scope, masterId, ledgerId, requested, signature } = command;
  demand((scope === 'master') === (masterId !== null), 'its scope has another object');
  const asked = canonicalObject(requested, 'requested');
  const objectId = textMember(asked, objectKeys[scope]) ?? '';
  demand(
    isUuid(objectId) && (scope === 'organization' || objectId === (masterId ?? ledgerId)),
    'it grants another object',
  );
  const forms = memberOf(asked, 'access') === undefined ? grantForms(command, objectId) : accessForms(command, asked);
  demand(forms[0] === requested, 'it grants something else than was asked for');
  if (signature !== null) demand(forms.includes(signature.signedForm), notSigned);
}

function grantForms(command: GrantAccess, objectId: string): readonly string[] {
  demandSignatureRule(command);
  const { scope, delegateActorId, role, permissions, expiresAt } = command;
  demand(expiresAt === null, 'it ends by itself');
  const access = textOrAbsent(canonicalObject(permissions, 'permissions'));
  demand(access === undefined || access === 'read' || access === 'write', 'its permissions are of another form');
  const object = grantObject(scope, objectId);
  return permissions === '{}'
    ? grantSignedForms(object, delegateActorId, role, undefined)
    : grantSignedForms(object, delegateActorId, role, JSON.parse(permissions));
}

/** Returns the member `access`. undefined: it is absent. null: it is not a string. */
function textOrAbsent(permissions: JsonObject): string | null | undefined {
  return memberOf(permissions, 'access') === undefined ? undefined : (textMember(permissions, 'access') ?? null);
}

/** Checks a grant of POST …/access, which need not be signed. Returns its signed forms. */
function accessForms(command: GrantAccess, asked: JsonObject): readonly string[] {
  const { scope, masterId, delegateActorId, permissions, expiresAt } = command;
  demand(scope === 'master' && masterId !== null, 'access is granted to masters alone');
  const access = textMember(asked, 'access') ?? '';
  demand(access === 'read' || access === 'write', 'its access is not known');
  demand(permissions === `{"access":"${access}"}`, 'it grants another access than was asked for');
  const end = textMember(asked, 'expires_at');
  const endMs = end === undefined ? null : parseRfc3339(end);
  demand((endMs === null ? null : isoTime(endMs)) === expiresAt, 'it ends at another time than was asked for');
  return accessSignedForms(masterId, delegateActorId, access, end);
}

function checkRevocation(command: RevokeAccess): void {
  const { scope, masterId, ledgerId, delegateActorId, linkId, signature } = command;
  demand((scope === 'master') === (masterId !== null), 'its scope has another object');
  demand((delegateActorId === null) !== (linkId === null), 'it names one of delegate and link');
  if (delegateActorId === null) {
    demand(scope === 'master' && signature === null, 'a link is revoked on a master, and is not signed');
    return;
  }
  demandSignatureRule(command);
  if (signature === null) return;
  const signed = canonicalObject(signature.signedForm, 'signedForm');
  const objectId = textMember(signed, objectKeys[scope]) ?? '';
  demand(scope === 'organization' || objectId === (masterId ?? ledgerId), notSigned);
  demand(revokeSignedForms(grantObject(scope, objectId), delegateActorId).includes(signature.signedForm), notSigned);
}
