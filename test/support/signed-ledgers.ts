import { eventContent, readEvent } from '../../src/client/event.ts';
import {
  type ActorDocument,
  type Event,
  type JsonObject,
  keysFromDocuments,
  type Verification,
  type VerifyOptions,
  verifyEvents,
} from '../../src/client/index.ts';
import { digestOf } from '../../src/client/signing/signing.ts';
import { authorityDigest, contentHash, contentJson, eventHash } from '../../src/domain/event/content.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import {
  injectedFields,
  masterClosedSignedForms,
  masterCreatedSignedForms,
} from '../../src/domain/event/service-events.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { signDigest } from '../../src/domain/keys/key-object.ts';
import type { CommandSignature } from '../../src/domain/ledger/command.ts';
import type { Checkpoint } from '../../src/domain/log/checkpoint.ts';
import { CompactRange } from '../../src/domain/log/compact-range.ts';
import { originOf } from '../../src/domain/log/origin.ts';
import { leafHash } from '../../src/domain/log/tree.ts';
import { append, closeMaster, createMaster, ledgerId, masterId, supplier } from './commands.ts';
import { factsOf, type Kind, kid, opened } from './ledger-kinds.ts';
import { newKeyPair } from './parties.ts';
import { authority, authorityPublicKey, type Chain, start } from './world.ts';

const signer = newKeyPair();

/** The supplier's signature over these fields. */
function signatureOver(eventType: string, signed: unknown): CommandSignature {
  const signedForm = canonicalJson(signed);
  const digest = digestOf({ eventType, ledgerId, canonical: signedForm });
  return { signature: signDigest(digest, signer.privateKey), keyId: kid, signedForm };
}

/** Ledgers of that kind whose events behind the opening are signed by the supplier, who is a party of each kind. */
export class SignedLedger {
  readonly chain: Chain;
  readonly #kind: Kind;

  constructor(kind: Kind) {
    this.#kind = kind;
    this.chain = opened(kind);
    const [form] = masterCreatedSignedForms(ledgerId, 'PO-1', 'ORDER');
    const signature = signatureOver('TRACELEDGER_MASTER_CREATED', JSON.parse(form));
    this.chain.run(createMaster({ signature }));
  }

  get injected(): Readonly<Record<string, string>> {
    return injectedFields(factsOf(this.#kind), { masterId, businessRef: 'PO-1', scope: 'ORDER' });
  }

  /** As the service appends it. `signed`: what is signed if it is not the injected form; `added`: not signed at all. */
  append(eventType: string, sent: JsonObject, signed?: JsonObject, added: JsonObject = {}): this {
    const injected = { ...this.injected, ...sent };
    const signature = signatureOver(eventType, signed ?? injected);
    this.chain.run(append({ eventType, payload: canonicalJson({ ...injected, ...added }), signature }));
    return this;
  }

  closeMaster(form: 'short' | 'long'): this {
    const forms = masterClosedSignedForms(factsOf(this.#kind), masterId, supplier);
    const signed = form === 'short' ? forms[0] : (forms[1] ?? forms[0]);
    this.chain.run(closeMaster({ signature: signatureOver('MASTER_CLOSED', JSON.parse(signed)) }));
    return this;
  }

  get events(): Event[] {
    return this.chain.events.map(shown);
  }
}

/** As a client reads it. */
function shown(event: LedgerEvent): Event {
  const { id, seq, eventType, actorId, actorType, createdAt, causedByHash, master, actorSig, signingKeyId } = event;
  return {
    ...{ id, ledgerId: event.ledgerId, seq, eventType, actorId, actorType, createdAt, causedByHash },
    ...{ masterId: master?.id ?? null, masterSeq: master?.seq ?? null, actorSig, signingKeyId },
    payload: JSON.parse(event.payload),
    actorSigPayload: event.actorSigPayload === null ? null : JSON.parse(event.actorSigPayload),
    ...{ hash: event.hash, contentHash: event.contentHash },
    ...{ authoritySig: event.authoritySig, authorityKeyId: event.authorityKeyId },
  };
}

/** Numbers, links and seals the events anew, as a lying server can. The signatures of actors stay as they are. */
export function relinked(events: readonly Event[]): Event[] {
  const masters = new Map<string, { readonly seq: number; readonly hash: string }>();
  let previous = '';
  return events.map((event, seq) => {
    const before = event.masterId === null ? null : (masters.get(event.masterId) ?? null);
    const masterSeq = event.masterId === null ? null : before === null ? 0 : before.seq + 1;
    const placed = { ...event, seq, masterSeq };
    const content = contentHash(contentJson(eventContent(readEvent(placed), before?.hash ?? '')));
    previous = eventHash(previous, content);
    if (event.masterId !== null) masters.set(event.masterId, { seq: masterSeq ?? 0, hash: content });
    const sealed = event.actorSig === null;
    return {
      ...placed,
      contentHash: content,
      hash: previous,
      authoritySig: sealed ? authority.sign(authorityDigest(previous), event.createdAt) : null,
      authorityKeyId: sealed ? authority.keyId : null,
    };
  });
}

/** The events with the last one changed, and everything made to fit that needs no key of an actor. */
export function withLastEvent(events: readonly Event[], change: (last: Event) => Partial<Event>): Event[] {
  const last = events.at(-1);
  if (last === undefined) throw new Error('there is no event');
  return relinked([...events.slice(0, -1), { ...last, ...change(last) }]);
}

/** Its payload gets these members, and what the actor signed stays. */
export function withUnsigned(events: readonly Event[], added: JsonObject): Event[] {
  return withLastEvent(events, ({ payload, actorSigPayload }) => ({
    payload: { ...payload, ...added },
    actorSigPayload: actorSigPayload ?? payload,
  }));
}

export function documentOf(actorId: string, change: Partial<ActorDocument['keys'][number]> = {}): ActorDocument {
  const key = {
    kid: `svc:actor:${actorId}#key-1`,
    algorithm: 'Ed25519',
    publicKey: signer.publicKey,
    status: 'ACTIVE',
    preferredSigning: true,
    validFrom: start,
    createdAt: start,
    revokedAt: null,
    revokedReason: null,
  };
  return { actorId, keys: [{ ...key, ...change }] };
}

const authorityKey = {
  kid: authority.keyId,
  algorithm: 'Ed25519',
  publicKey: Buffer.from(authorityPublicKey.export({ format: 'der', type: 'spki' }).subarray(-32)).toString('base64'),
  fingerprint: '',
  validFrom: '2026-11-01T00:00:00.000Z',
  validTo: null,
};

/** A checkpoint of these events, as the service would sign it. */
function checkpointOf(events: readonly Event[]): Checkpoint {
  const range = new CompactRange();
  for (const { hash } of events) range.append(leafHash(Buffer.from(hash, 'hex')));
  const origin = originOf({ serviceName: 'test.example', kind: 'ledger', id: ledgerId });
  return { origin, size: events.length, root: range.root() };
}

/** With the keys of all who signed, and as a whole ledger with its checkpoint, unless `change` says otherwise. */
export function verifySigned(events: readonly Event[], change: Partial<VerifyOptions> = {}): Promise<Verification> {
  return verifyEvents(events, {
    keys: keysFromDocuments([documentOf(supplier)]),
    authorityKeys: [authorityKey],
    trustedKeys: 'all',
    kind: 'ledger',
    ...(change.kind === 'segment' ? {} : { checkpoint: checkpointOf(events) }),
    ...change,
  });
}
