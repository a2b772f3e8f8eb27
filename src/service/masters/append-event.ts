import type { CommandOutcome } from '../../actors/inbox/outcome.ts';
import type { LedgerError } from '../../domain/errors.ts';
import type { LedgerFacts, MasterFacts } from '../../domain/event/facts.ts';
import { injectedFields } from '../../domain/event/service-events.ts';
import { type JsonNode, memberOf, withMembers } from '../../domain/json/json.ts';
import type { UnkeyedCommand } from '../../domain/ledger/command.ts';
import { checkCallerEventType, checkUuid } from '../../domain/values/fields.ts';
import { isUuid } from '../../domain/values/uuid-form.ts';
import type { Identities } from '../actors/identities.ts';
import type { SigningInput } from '../actors/signature-details.ts';
import { checkCallSignature } from '../actors/signing.ts';
import type { AppendCall, Call } from '../calls/call.ts';
import { callerOf, demandEntitySignature } from '../calls/caller.ts';
import { commandKeyOf } from '../idempotency/command-key.ts';
import { appendFingerprint } from '../idempotency/fingerprint.ts';
import type { OnceSubmitter, PreparedCommand } from '../idempotency/submit-once.ts';
import type { LedgerReading } from '../reading/ledger-reading.ts';
import {
  byName,
  checkDeliveryChain,
  checkPayload,
  compareFields,
  type Injection,
  injectionOf,
  parsePayload,
} from './payload.ts';

interface AppendFields {
  readonly uuid: string;
  readonly eventType: string;
  /** JSON text. */
  readonly payload: string;
}

/** A validated append whose signature is not verified yet. */
interface ReadAppend extends SigningInput {
  readonly masterId: string;
  /** Canonical JSON, with all fields that the service adds. */
  readonly payload: string;
  readonly causedByHash: string | null;
  /** Thrown once the signature has verified: it shows a fact of the master. */
  readonly refusal: LedgerError | null;
}

/** Appends of callers' events, one at a time or from a stream. */
export class EventAppender {
  readonly #identities: Identities;
  readonly #reading: LedgerReading;
  readonly #commands: OnceSubmitter;
  /** The facts of a master never change and are cached by LedgerReading. */
  readonly #injections = new WeakMap<MasterFacts, Injection>();

  constructor(identities: Identities, reading: LedgerReading, commands: OnceSubmitter) {
    this.#identities = identities;
    this.#reading = reading;
    this.#commands = commands;
  }

  /** The ledger of a master whose facts are cached, else null. */
  ledgerOf(masterId: string): string | null {
    return this.#reading.knownMaster(masterId)?.ledgerId ?? null;
  }

  /** Reads the store if need be. null if there is no such master, or if the id is no UUID. */
  async findLedger(masterId: string): Promise<string | null> {
    if (!isUuid(masterId)) return null;
    return (await this.#reading.masterFacts(masterId))?.ledgerId ?? null;
  }

  append(call: Call, request: AppendFields): Promise<CommandOutcome> {
    const options = { ledgerOf: () => this.findLedger(request.uuid), isSignedEvent: true };
    return this.#commands.submitOnce(call, options, () => this.#check(call, request, call.takeJson('payload')));
  }

  /** The first half of an append of a stream. `key` is its idempotency key. Rejects if the append is refused. */
  async prepare(call: AppendCall, request: AppendFields, key: string | undefined): Promise<PreparedCommand> {
    demandEntitySignature(call);
    const parsed = parsePayload(request.payload);
    const { uuid, eventType } = request;
    const fingerprint = () => appendFingerprint(uuid, eventType, parsed.canonical);
    const commandKey = key === undefined ? null : commandKeyOf(callerOf(call).actorId, key, fingerprint());
    const made = this.#check(call, request, parsed);
    return this.#commands.prepareOnce({ ...call, commandKey }, () => this.findLedger(uuid), made);
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
  #check(call: AppendCall, request: AppendFields, parsed: JsonNode | null): Promise<UnkeyedCommand> {
    return this.#read(call, request, parsed).then((read) => this.#verified(call, read));
  }

  async #read(call: AppendCall, request: AppendFields, parsed: JsonNode | null): Promise<ReadAppend> {
    const caller = callerOf(call);
    const masterId = checkUuid('uuid', request.uuid);
    const eventType = checkCallerEventType('event_type', request.eventType);
    const { object, causedByHash } = checkPayload(parsed ?? parsePayload(request.payload));
    const chain = call.deliveryChain === null ? null : checkDeliveryChain(call.deliveryChain);

    const { facts: master, ledger } = await this.#reading.readableMaster(masterId, caller.actorId);
    const { missing, refusal } = compareFields(object, this.#injection(ledger, master));
    if (refusal !== null && !caller.mustSign) throw refusal;
    const injected = withMembers(object, missing);
    // The payload as submitted may be signed only if it names its master, so that the signature fits no other master.
    const alsoSubmitted = missing.length > 0 && memberOf(object, 'traceledger_master_uuid') !== undefined;
    return {
      masterId,
      ledgerId: ledger.ledgerId,
      eventType,
      forms: alsoSubmitted ? [injected, object.canonical] : [injected],
      payload: chain === null ? injected : withMembers(object, [...missing, chain].sort(byName)),
      causedByHash,
      refusal,
    };
  }

  async #verified(call: AppendCall, read: ReadAppend): Promise<UnkeyedCommand> {
    const { masterId, ledgerId, eventType, forms, payload, causedByHash, refusal } = read;
    const signature = await checkCallSignature(this.#identities, call, 'if_keyed', { eventType, ledgerId, forms });
    if (refusal !== null) throw refusal;
    return {
      kind: 'append_event',
      ledgerId,
      masterId,
      signature,
      signatureRule: 'if_keyed',
      eventType,
      payload,
      causedByHash,
    };
  }
}

/** It is made of the event alone, so that a replay gives the same answer again. */
export function appendedMessage({ event }: CommandOutcome) {
  return {
    traceledgerMasterUuid: event.master?.id ?? '',
    ledgerId: event.ledgerId,
    eventType: event.eventType,
    status: 'recorded',
    eventId: event.id,
    seq: BigInt(event.seq),
    masterSeq: BigInt(event.master?.seq ?? 0),
    hash: event.hash,
    createdAt: event.createdAt,
  };
}
