import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import type { Directory } from '../../actors/routing/directory.ts';
import type { LedgerFacts } from '../../domain/event/ledger-facts.ts';
import type { MasterFacts } from '../../domain/event/master-facts.ts';
import { injectedFields } from '../../domain/event/service-events.ts';
import { type JsonNode, memberOf, parseJson, withMembers } from '../../domain/json/json.ts';
import { sigDigest } from '../../domain/keys/digest.ts';
import type { AppendEvent, Lane } from '../../domain/ledger/command.ts';
import { checkCallerEventType, checkUuid } from '../../domain/values/fields.ts';
import { isUuid } from '../../domain/values/uuid.ts';
import type { Identities } from '../actors/identities.ts';
import { checkCallSignature, demandEntitySignature, type SigningInput } from '../actors/signing.ts';
import type { Call } from '../calls/call.ts';
import { callerOf } from '../calls/call-caller.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import { appendFingerprint, checkIdempotencyKey, commandKey } from './command-key.ts';
import { commandKeys } from './command-keys.ts';
import {
  checkDeliveryChain,
  checkPayload,
  type Injection,
  injectFields,
  injectionOf,
  parsePayload,
} from './payload.ts';
import type { Replays } from './replays.ts';

interface AppendFields {
  readonly uuid: string;
  readonly eventType: string;
  /** JSON text. */
  readonly payload: string;
}

/** The result of the first half of an append. */
export type PreparedAppend =
  /** Validated and verified. `submit` runs it. */
  | { readonly kind: 'checked'; submit(lane: Lane | null): Promise<CommandOutcome> }
  /** It would be refused now, but was written before. It takes no place in a lane. */
  | { readonly kind: 'replayed'; readonly first: CommandOutcome };

/** A validated append whose signature is not verified yet. */
interface ReadAppend extends SigningInput {
  readonly masterId: string;
  /** Canonical JSON, with all fields that the service adds. */
  readonly payload: string;
  readonly causedByHash: string | null;
}

/** A call whose command key is set once its payload is parsed. */
interface MarkedCall extends Call {
  command: Call['command'];
}

/** Appends of callers' events, one at a time or from a stream. */
export class Appending {
  readonly #identities: Identities;
  readonly #reading: LedgerReading;
  readonly #directory: Directory;
  readonly #replays: Replays;
  /** By the facts of a master, which never change and are cached by LedgerReading. */
  readonly #injections = new WeakMap<MasterFacts, Injection>();

  constructor(identities: Identities, reading: LedgerReading, directory: Directory, replays: Replays) {
    this.#identities = identities;
    this.#reading = reading;
    this.#directory = directory;
    this.#replays = replays;
  }

  /** The ledger of a master whose facts are cached, else null. */
  ledgerOf(masterId: string): string | null {
    return this.#reading.knownMaster(masterId)?.ledgerId ?? null;
  }

  /** The ledger of a master, read from the store if need be. null if there is none, or if the id is no UUID. */
  async findLedger(masterId: string): Promise<string | null> {
    if (!isUuid(masterId)) return null;
    return (await this.#reading.masterFacts(masterId))?.ledgerId ?? null;
  }

  /** Throws `signature_required` synchronously, and rejects with every other error. */
  append(call: Call, request: AppendFields): Promise<CommandOutcome> {
    return this.#replays.orElseSigned(
      call,
      () => this.findLedger(request.uuid),
      () =>
        this.#check(call, request, call.takeJson('payload')).then((command) =>
          this.#replays.carryOut(this.#directory, command),
        ),
    );
  }

  /**
   * The first half of an append of a stream. `key` is its idempotency key. Rejects with the error that the append is
   * refused with.
   */
  async prepare(call: MarkedCall, request: AppendFields, key: string | undefined): Promise<PreparedAppend> {
    demandEntitySignature(call);
    const parsed = parsePayload(request.payload);
    if (key !== undefined) {
      const { actorId } = callerOf(call);
      const fingerprint = appendFingerprint(request.uuid, request.eventType, parsed.canonical);
      call.command = commandKey(actorId, checkIdempotencyKey(key), fingerprint);
    }
    try {
      const command = await this.#check(call, request, parsed);
      return { kind: 'checked', submit: (lane) => this.#directory.submit({ ...command, lane }) };
    } catch (error) {
      // An unverified call under the entity's header may come from anybody, so it gets no event of the entity as an
      // answer.
      if (callerOf(call).mustSign) throw error;
      const first = await this.#replays.find(call, () => this.findLedger(request.uuid));
      if (first === null) throw error;
      return { kind: 'replayed', first };
    }
  }

  #injection(ledger: LedgerFacts, master: MasterFacts): Injection {
    let injection = this.#injections.get(master);
    if (injection === undefined) {
      injection = injectionOf(injectedFields(ledger, master));
      this.#injections.set(master, injection);
    }
    return injection;
  }

  /**
   * No `await` here: it would keep all of `parsed`, ten times as large as its text, in memory until the signature is
   * verified.
   */
  #check(call: Call, request: AppendFields, parsed: JsonNode | null): Promise<AppendEvent> {
    return this.#read(call, request, parsed).then((read) => this.#verified(call, read));
  }

  async #read(call: Call, request: AppendFields, parsed: JsonNode | null): Promise<ReadAppend> {
    const caller = callerOf(call);
    const masterId = checkUuid('uuid', request.uuid);
    const eventType = checkCallerEventType('event_type', request.eventType);
    const { object, causedByHash } = checkPayload(parsed ?? parsePayload(request.payload));
    const chain = call.deliveryChain === null ? null : checkDeliveryChain(call.deliveryChain);

    const { facts: master, ledger } = await this.#reading.readableMaster(masterId, caller.actorId);
    const injected = injectFields(object, this.#injection(ledger, master));
    const asSubmitted = object.canonical;
    // The payload as submitted may be signed only if it names its master, so that the signature fits no other master.
    const alsoSubmitted = asSubmitted !== injected && memberOf(object, 'traceledger_master_uuid') !== undefined;
    return {
      masterId,
      ledgerId: ledger.ledgerId,
      eventType,
      forms: alsoSubmitted ? [injected, asSubmitted] : [injected],
      payload: chain === null ? injected : withChain(injected, chain),
      causedByHash,
    };
  }

  async #verified(call: Call, read: ReadAppend): Promise<AppendEvent> {
    const caller = callerOf(call);
    const { masterId, ledgerId, eventType, forms, payload, causedByHash } = read;
    const signature = await checkCallSignature(this.#identities, call, 'if_keyed', { eventType, ledgerId, forms });
    const digest =
      signature !== null && caller.via === 'entity_header'
        ? sigDigest(eventType, ledgerId, signature.signedForm)
        : null;
    return {
      kind: 'append_event',
      ledgerId,
      masterId,
      actorId: caller.actorId,
      actorType: caller.actorType,
      signature,
      signatureRule: 'if_keyed',
      commandKeys: commandKeys(call, digest),
      deadline: call.deadline,
      eventType,
      payload,
      causedByHash,
    };
  }
}

function withChain(payload: string, chain: string): string {
  const object = parseJson(payload);
  if (object.kind !== 'object') throw new Error('a payload is an object');
  return withMembers(object, [{ name: 'delivery_chain', text: `"delivery_chain":${chain}` }]);
}
