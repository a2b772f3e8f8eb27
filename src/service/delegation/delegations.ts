import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import { invalidField, notFound, refusedValue } from '../../domain/errors.ts';
import { parties } from '../../domain/event/facts.ts';
import { accessRole, type GrantScope, permissionsBytesMax } from '../../domain/event/grant.ts';
import {
  accessSignedForms,
  grantedType,
  grantObject,
  grantSignedForms,
  revokedType,
  revokeSignedForms,
} from '../../domain/event/service-events.ts';
import { type JsonNode, memberOf, parseJsonField, toValue } from '../../domain/json/json.ts';
import type { GrantAccess, RevokeAccess, Unkeyed } from '../../domain/ledger/command.ts';
import { checkLabel, checkTime, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { Identities } from '../actors/identities.ts';
import type { SigningInput } from '../actors/signature-details.ts';
import { checkCallSignature } from '../actors/signing.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/caller.ts';
import { refuseOtherWorld } from '../calls/world-check.ts';
import { checkCanonicalBytes } from '../encoding/canonical-bytes.ts';
import type { OnceSubmitter } from '../idempotency/submit-once.ts';
import { type OrganizationRecord, organizationCollection } from '../organizations/organization-record.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import type { Collection } from '../records/collection.ts';

/** The object of a delegation (an organization, a ledger or a master), and the ledger that has the events about it. */
export interface DelegationObject {
  readonly scope: GrantScope;
  readonly id: string;
  readonly ledgerId: string;
}

/** The request fields of a grant, besides its object. */
export interface GrantFields {
  readonly delegateActorId: string;
  readonly role: string;
  /** JSON text. */
  readonly permissions?: string | undefined;
}

/** What the two ways to grant have set. */
type GrantParts = Pick<GrantAccess, 'delegateActorId' | 'role' | 'permissions' | 'expiresAt' | 'signatureRule'>;
type DelegationCommand = Omit<Unkeyed<GrantAccess>, 'ledgerId'> | Omit<Unkeyed<RevokeAccess>, 'ledgerId'>;

/** Grants and revokes access at all three scopes: organization, ledger and master. */
export class Delegations {
  readonly #organizations: Collection<OrganizationRecord>;
  readonly #identities: Identities;
  readonly #reading: LedgerReading;
  readonly #commands: OnceSubmitter;

  constructor(records: RecordStore, identities: Identities, reading: LedgerReading, commands: OnceSubmitter) {
    this.#organizations = organizationCollection(records);
    this.#identities = identities;
    this.#reading = reading;
    this.#commands = commands;
  }

  /**
   * The object, if the caller may read all events of that scope. Throws `not_found`, `permission_denied` or
   * `access_expired`.
   */
  async readable(call: Call, scope: GrantScope, id: string): Promise<DelegationObject> {
    const { actorId } = callerOf(call);
    if (scope === 'master') {
      const { ledger } = await this.#reading.readableMaster(id, actorId);
      return { scope, id, ledgerId: ledger.ledgerId };
    }
    const ledgerId = await this.#ledgerOf(scope, id);
    if (ledgerId === null) throw notFound('organization');
    if (scope === 'ledger') await this.#reading.wholeLedger(call.walk, ledgerId, actorId);
    else await this.#reading.readableOrganization(ledgerId, actorId);
    return { scope, id, ledgerId };
  }

  /** Grants a role with permissions. A caller that has signing keys must sign. */
  async grant(call: Call, scope: GrantScope, objectId: string, request: GrantFields): Promise<CommandOutcome> {
    const delegateActorId = checkUuid('delegate_actor_id', request.delegateActorId);
    const role = checkLabel('role', request.role);
    const permissions =
      request.permissions === undefined
        ? undefined
        : checkPermissions(request.permissions, call.takeJson('permissions'));
    const value = permissions === undefined ? undefined : toValue(permissions);
    const forms = grantSignedForms(grantObject(scope, objectId), delegateActorId, role, value);
    const parts: GrantParts = {
      delegateActorId,
      role,
      permissions: permissions?.canonical ?? '{}',
      expiresAt: null,
      signatureRule: 'if_keyed',
    };
    return this.#grant(call, scope, objectId, 'delegate_actor_id', parts, forms);
  }

  /** POST …/access: a master grant that may expire. A signature is optional, and verified if it is sent. */
  async grantAccess(
    call: Call,
    masterId: string,
    request: { readonly actorId: string; readonly access: string; readonly expiresAt?: string | undefined },
  ): Promise<CommandOutcome> {
    const delegateActorId = checkUuid('actor_id', request.actorId);
    const { access } = request;
    if (access !== 'read' && access !== 'write') throw refusedValue('access', access, '"read" or "write"');
    const parts: GrantParts = {
      delegateActorId,
      role: accessRole,
      permissions: `{"access":"${access}"}`,
      expiresAt: request.expiresAt === undefined ? null : isoTime(checkTime('expires_at', request.expiresAt)),
      signatureRule: 'optional',
    };
    const forms = accessSignedForms(masterId, delegateActorId, access, request.expiresAt);
    return this.#grant(call, 'master', masterId, 'actor_id', parts, forms);
  }

  async revoke(call: Call, scope: GrantScope, objectId: string, delegate: string): Promise<CommandOutcome> {
    const delegateActorId = checkUuid('delegate_actor_id', delegate);
    const forms = revokeSignedForms(grantObject(scope, objectId), delegateActorId);
    return this.#submit(call, scope, objectId, async (ledgerId) => {
      const input = { eventType: revokedType[scope], ledgerId, forms };
      const signature = await checkCallSignature(this.#identities, call, 'if_keyed', input);
      const masterId = scope === 'master' ? objectId : null;
      return { kind: 'revoke', scope, masterId, delegateActorId, linkId: null, signature, signatureRule: 'if_keyed' };
    });
  }

  /** DELETE …/access/{link_id}. */
  async revokeLink(call: Call, masterId: string, link: string): Promise<CommandOutcome> {
    const linkId = checkUuid('link_id', link);
    return this.#submit(call, 'master', masterId, async () => ({
      kind: 'revoke',
      scope: 'master',
      masterId,
      delegateActorId: null,
      linkId,
      signature: null,
      signatureRule: 'optional',
    }));
  }

  /** `field` is the request field that names the delegate. */
  #grant(
    call: Call,
    scope: GrantScope,
    objectId: string,
    field: string,
    parts: GrantParts,
    forms: SigningInput['forms'],
  ): Promise<CommandOutcome> {
    return this.#submit(call, scope, objectId, async (ledgerId) => {
      await this.#checkDelegate(call, ledgerId, field, parts.delegateActorId);
      const input = { eventType: grantedType[scope], ledgerId, forms };
      const signature = await checkCallSignature(this.#identities, call, parts.signatureRule, input);
      const masterId = scope === 'master' ? objectId : null;
      return { ...parts, kind: 'grant', scope, masterId, linkId: call.newId(), requested: forms[0], signature };
    });
  }

  /**
   * Throws unless the delegate is another actor than the caller, exists, and is in the same world as the caller and the
   * ledger's parties. An actor without a world is allowed. This is no rule of the ledger: older logs may hold grants of
   * actors to themselves.
   */
  async #checkDelegate(call: Call, ledgerId: string, field: string, actorId: string): Promise<void> {
    if (actorId === callerOf(call).actorId) throw invalidField(field, 'another actor than the caller');
    const delegate = await this.#identities.recentOther(actorId);
    if (delegate === null) throw notFound('actor', field);
    refuseOtherWorld(callerOf(call).world, delegate.world, field);
    const ledger = await this.#reading.ledgerFacts(ledgerId);
    for (const party of ledger === null ? [] : parties(ledger)) {
      refuseOtherWorld((await this.#identities.recentOther(party))?.world ?? null, delegate.world, field);
    }
  }

  /** Finds the object, then makes the command with `make` and submits it. A retry returns the first outcome. */
  #submit(
    call: Call,
    scope: GrantScope,
    objectId: string,
    make: (ledgerId: string) => Promise<DelegationCommand>,
  ): Promise<CommandOutcome> {
    // An entity that must sign has signed the whole request, if these methods take its identity headers at all.
    const options = { ledgerOf: () => this.#ledgerOf(scope, objectId), isSignedEvent: false };
    return this.#commands.submitOnce(call, options, async () => {
      const { ledgerId } = await this.readable(call, scope, objectId);
      return { ...(await make(ledgerId)), ledgerId };
    });
  }

  /** The ledger that has the events about an object, without any check of access. null if there is no such object. */
  async #ledgerOf(scope: GrantScope, id: string): Promise<string | null> {
    if (scope === 'ledger') return id;
    if (scope === 'master') return (await this.#reading.masterFacts(id))?.ledgerId ?? null;
    return (await this.#organizations.get(id))?.value.frlLedgerId ?? null;
  }
}

/**
 * Checks the permissions. `access`, if given, must be read or write: a misspelt value must not become a grant. Other
 * keys are stored and grant nothing. Throws `invalid_argument` or `payload_too_large`.
 */
function checkPermissions(text: string, parsed: JsonNode | null): JsonNode {
  const node = parsed ?? parseJsonField(text);
  if (node.kind !== 'object') throw invalidField('permissions', 'a JSON object');
  checkCanonicalBytes(node, permissionsBytesMax, { field: 'permissions', subject: 'permissions have' });
  const access = memberOf(node, 'access');
  if (access !== undefined && (access.kind !== 'string' || (access.value !== 'read' && access.value !== 'write'))) {
    throw refusedValue('permissions.access', toValue(access), '"read" or "write"');
  }
  return node;
}
