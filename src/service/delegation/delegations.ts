import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import type { Directory } from '../../actors/routing/directory.ts';
import { invalidField, notFound } from '../../domain/errors.ts';
import { type Grant, type GrantScope, grantOf } from '../../domain/event/grant.ts';
import { parties } from '../../domain/event/ledger-facts.ts';
import {
  accessSignedForms,
  grantedType,
  grantObject,
  grantSignedForms,
  revokedType,
  revokeSignedForms,
} from '../../domain/event/service-events.ts';
import { type JsonNode, memberOf, parseJsonField, toValue } from '../../domain/json/json.ts';
import type { GrantAccess, RevokeAccess } from '../../domain/ledger/command.ts';
import { checkLabel, checkTime, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { RecordStore } from '../../store/record-store.ts';
import type { Identities } from '../actors/identities.ts';
import { checkCallSignature } from '../actors/signing.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/call-caller.ts';
import { refuseOtherWorld } from '../calls/worlds.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { commandKeys } from '../writing/command-keys.ts';
import type { Replays } from '../writing/replays.ts';
import { type DelegationObject, type DelegationObjects, delegationObjects } from './delegation-object.ts';

/** Role of the grants of POST …/access. */
const accessRole = 'ACCESS';

/** The request fields of a grant, besides its object. */
export interface GrantFields {
  readonly delegateActorId: string;
  readonly role: string;
  /** JSON text. */
  readonly permissions?: string | undefined;
}

/** Grants and revokes access at all three scopes: organization, ledger and master. */
export class Delegations {
  readonly #objects: DelegationObjects;
  readonly #identities: Identities;
  readonly #reading: LedgerReading;
  readonly #directory: Directory;
  readonly #replays: Replays;

  constructor(
    records: RecordStore,
    identities: Identities,
    reading: LedgerReading,
    directory: Directory,
    replays: Replays,
  ) {
    this.#objects = delegationObjects(records, reading);
    this.#identities = identities;
    this.#reading = reading;
    this.#directory = directory;
    this.#replays = replays;
  }

  /**
   * The object, if the caller may read all events of that scope. Throws `not_found`, `permission_denied` or
   * `access_expired`.
   */
  readable(call: Call, scope: GrantScope, id: string): Promise<DelegationObject> {
    return this.#objects.readable(call.walk, scope, id, callerOf(call).actorId);
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
    return this.#run(call, scope, objectId, async (object) => {
      await this.#checkDelegate(call, object, 'delegate_actor_id', delegateActorId);
      const input = { eventType: grantedType[scope], ledgerId: object.ledgerId, forms };
      const signature = await checkCallSignature(this.#identities, call, 'if_keyed', input);
      return {
        kind: 'grant' as const,
        scope,
        masterId: scope === 'master' ? objectId : null,
        linkId: call.newId(),
        delegateActorId,
        role,
        permissions: permissions?.canonical ?? '{}',
        expiresAt: null,
        requested: forms[0],
        signature,
        signatureRule: 'if_keyed' as const,
      };
    });
  }

  /** POST …/access: a master grant that may expire. A signature is optional, and verified if it is sent. */
  async grantAccess(
    call: Call,
    masterId: string,
    request: { readonly actorId: string; readonly access: string; readonly expiresAt?: string | undefined },
  ): Promise<CommandOutcome> {
    const delegateActorId = checkUuid('actor_id', request.actorId);
    const { access } = request;
    if (access !== 'read' && access !== 'write') throw invalidField('access', '"read" or "write"');
    const expiresAt = request.expiresAt === undefined ? null : isoTime(checkTime('expires_at', request.expiresAt));
    const forms = accessSignedForms(masterId, delegateActorId, access, request.expiresAt);
    return this.#run(call, 'master', masterId, async (object) => {
      await this.#checkDelegate(call, object, 'actor_id', delegateActorId);
      const input = { eventType: grantedType.master, ledgerId: object.ledgerId, forms };
      const signature = await checkCallSignature(this.#identities, call, 'optional', input);
      return {
        kind: 'grant' as const,
        scope: 'master' as const,
        masterId,
        linkId: call.newId(),
        delegateActorId,
        role: accessRole,
        permissions: `{"access":"${access}"}`,
        expiresAt,
        requested: forms[0],
        signature,
        signatureRule: 'optional' as const,
      };
    });
  }

  async revoke(call: Call, scope: GrantScope, objectId: string, delegate: string): Promise<CommandOutcome> {
    const delegateActorId = checkUuid('delegate_actor_id', delegate);
    return this.#run(call, scope, objectId, async (object) => {
      const forms = revokeSignedForms(grantObject(scope, objectId), delegateActorId);
      const input = { eventType: revokedType[scope], ledgerId: object.ledgerId, forms };
      const signature = await checkCallSignature(this.#identities, call, 'if_keyed', input);
      const masterId = scope === 'master' ? objectId : null;
      return {
        kind: 'revoke' as const,
        scope,
        masterId,
        delegateActorId,
        linkId: null,
        signature,
        signatureRule: 'if_keyed' as const,
      };
    });
  }

  /** DELETE …/access/{link_id}. */
  async revokeLink(call: Call, masterId: string, link: string): Promise<CommandOutcome> {
    const linkId = checkUuid('link_id', link);
    return this.#run(call, 'master', masterId, async () => ({
      kind: 'revoke' as const,
      scope: 'master' as const,
      masterId,
      delegateActorId: null,
      linkId,
      signature: null,
      signatureRule: 'optional' as const,
    }));
  }

  /**
   * Throws unless the delegate exists and is in the same world as the caller and the ledger's parties. An actor without
   * a world is allowed.
   */
  async #checkDelegate(call: Call, object: DelegationObject, field: string, actorId: string): Promise<void> {
    const delegate = await this.#identities.recent(actorId);
    if (delegate === null) throw notFound('actor', field);
    refuseOtherWorld(callerOf(call).world, delegate.world, field);
    const ledger = await this.#reading.ledgerFacts(object.ledgerId);
    for (const party of ledger === null ? [] : parties(ledger)) {
      refuseOtherWorld((await this.#identities.recent(party))?.world ?? null, delegate.world, field);
    }
  }

  /** Finds the object, then makes the command with `make` and submits it. A retry returns the first outcome. */
  async #run(
    call: Call,
    scope: GrantScope,
    objectId: string,
    make: (object: DelegationObject) => Promise<DelegationCommand>,
  ): Promise<CommandOutcome> {
    const caller = callerOf(call);
    const ledgerOf = () => this.#objects.ledgerOf(scope, objectId);
    const outcome = await this.#replays.orElse(call, ledgerOf, async () => {
      const object = await this.#objects.readable(call.walk, scope, objectId, caller.actorId);
      const command = await make(object);
      return this.#directory.submit({
        ...command,
        ledgerId: object.ledgerId,
        actorId: caller.actorId,
        actorType: caller.actorType,
        commandKeys: commandKeys(call, null),
        deadline: call.deadline,
      });
    });
    if (outcome.replayed) call.markReplayed();
    return outcome;
  }
}

type GrantPart = Omit<GrantAccess, 'ledgerId' | 'actorId' | 'actorType' | 'commandKeys' | 'deadline'>;
type RevokePart = Omit<RevokeAccess, 'ledgerId' | 'actorId' | 'actorType' | 'commandKeys' | 'deadline'>;
type DelegationCommand = GrantPart | RevokePart;

/**
 * Checks the permissions. `access`, if given, must be read or write: a misspelt value must not become a grant. Other
 * keys are stored and grant nothing.
 */
function checkPermissions(text: string, parsed: JsonNode | null): JsonNode {
  const node = parsed ?? parseJsonField(text);
  if (node.kind !== 'object') throw invalidField('permissions', 'a JSON object');
  const access = memberOf(node, 'access');
  if (access !== undefined && (access.kind !== 'string' || (access.value !== 'read' && access.value !== 'write'))) {
    throw invalidField('permissions.access', '"read" or "write"');
  }
  return node;
}

/** The grant that an outcome wrote. */
export function madeGrant(outcome: CommandOutcome): Grant {
  return grantOf(outcome.event);
}

/** The link that an outcome ended, and when. */
export function endedLink(outcome: CommandOutcome): {
  readonly linkId: string;
  readonly delegateActorId: string;
  readonly revokedAt: string;
} {
  const payload = JSON.parse(outcome.event.payload) as {
    link_id: string;
    delegate_actor_id: string;
    revoked_at: string;
  };
  return { linkId: payload.link_id, delegateActorId: payload.delegate_actor_id, revokedAt: payload.revoked_at };
}
