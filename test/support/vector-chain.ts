import { eventContent, readEvent } from '../../src/client/event.ts';
import {
  type ActorDocument,
  type Checkpoint,
  type Event,
  type JsonObject,
  keysFromDocuments,
  type Verification,
  type VerifyOptions,
  verifyCheckpoint,
  verifyEvents,
} from '../../src/client/index.ts';
import { authorityDigest, contentHash, contentJson, eventHash } from '../../src/domain/event/content.ts';
import { ed25519Key, signDigest } from '../../src/domain/keys/key-object.ts';
import { logVectors, type VectorLog } from './log-vectors.ts';
import { type VectorEvent, vectors } from './vectors.ts';

export const supplier = '0193a000-0000-7000-8000-00000000000a';
export const masterA = '0193a000-0000-7000-8000-0000000000aa';

function eventOf(vector: VectorEvent): Event {
  const text = (name: string) => (vector.content[name] ?? null) as string;
  return {
    id: text('id'),
    ledgerId: text('ledger_id'),
    seq: Number(vector.content.seq),
    masterId: vector.content.master?.id ?? null,
    masterSeq: vector.content.master?.seq ?? null,
    eventType: text('event_type'),
    actorId: text('actor_id'),
    actorType: text('actor_type'),
    payload: vector.payload,
    hash: vector.hash,
    contentHash: vector.content_hash,
    causedByHash: text('caused_by_hash'),
    actorSig: text('actor_sig'),
    signingKeyId: text('signing_key_id'),
    actorSigPayload: vector.actor_sig_payload,
    authoritySig: vector.authority_sig ?? null,
    authorityKeyId: vector.authority_key_id ?? null,
    createdAt: text('created_at'),
  };
}

/** The ledger as a client reads it, from its genesis to its closing. */
export const chain: readonly Event[] = vectors.chain.map(eventOf);
export const ofMasterA = chain.filter((event) => event.masterId === masterA);

/** The resolver's document of the supplier. */
export function documentOf(change: Partial<ActorDocument['keys'][number]> = {}): ActorDocument {
  const key = {
    kid: vectors.kid,
    algorithm: 'Ed25519',
    publicKey: vectors.keys.supplier.public_key_base64,
    status: 'ACTIVE',
    preferredSigning: true,
    validFrom: '2026-11-21T02:06:39.000Z',
    createdAt: '2026-11-21T02:06:39.000Z',
    revokedAt: null,
    revokedReason: null,
  };
  return { actorId: supplier, keys: [{ ...key, ...change }] };
}

export const authorityKey = {
  kid: 'svc:authority#key-1',
  algorithm: 'Ed25519',
  publicKey: vectors.keys.authority.public_key_base64,
  fingerprint: '',
  validFrom: '2026-11-01T00:00:00.000Z',
  validTo: null,
};
const authorityKeys: NonNullable<VerifyOptions['authorityKeys']> = [authorityKey];
/** All keys at hand, the ledger read from its beginning. */
export const whole: VerifyOptions = {
  keys: keysFromDocuments([documentOf()]),
  authorityKeys,
  trustedKeys: 'all',
  kind: 'ledger',
};

/** The signed checkpoint of the first events of the ledger, or of another log of the vectors. */
export function checkpointOf(size: number, { origin, checkpoints }: VectorLog = logVectors.ledger): Checkpoint {
  const note = checkpoints.find((checkpoint) => checkpoint.size === size)?.note ?? '';
  return verifyCheckpoint(note, { origin, keys: [logVectors.log_key.public_key_base64] });
}

export const verify = (events: readonly Event[], change: Partial<VerifyOptions> = {}): Promise<Verification> =>
  verifyEvents(events, { ...whole, ...change });

export function at(index: number): Event {
  const event = chain[index];
  if (event === undefined) throw new Error(`the vectors have no event ${index}`);
  return event;
}

/** The ledger with one event changed and nothing made to fit. */
export function changed(index: number, change: Partial<Event>): Event[] {
  return chain.map((event, position) => (position === index ? { ...event, ...change } : event));
}

/** The next free places, as anybody can give them: numbers, times and hashes fit, and no key is needed. */
export function relinked(events: readonly Event[]): Event[] {
  const masters = new Map<string, number>();
  const placed = events.map((event, seq) => {
    const { masterId } = event;
    const masterSeq = masterId === null ? null : (masters.get(masterId) ?? 0);
    if (masterId !== null && masterSeq !== null) masters.set(masterId, masterSeq + 1);
    return { ...event, seq, masterSeq };
  });
  return resealed(placed, 0, false);
}

/** Makes the chain from `index` on consistent again, as a service that forges would. Signatures stay as they are. */
export function resealed(events: readonly Event[], index: number, seal = true): Event[] {
  const masters = new Map<string, string>();
  let previous = '';
  return events.map((event, position) => {
    let next = event;
    if (position >= index) {
      const before = event.masterId === null ? '' : (masters.get(event.masterId) ?? '');
      const content = contentHash(contentJson(eventContent(readEvent(event), before)));
      const hash = eventHash(previous, content);
      const authority = ed25519Key(Buffer.from(vectors.keys.authority.seed_hex, 'hex'));
      const authoritySig =
        event.actorSig === null && seal ? signDigest(authorityDigest(hash), authority) : event.authoritySig;
      next = { ...event, contentHash: content, hash, authoritySig };
    }
    if (next.masterId !== null) masters.set(next.masterId, next.contentHash);
    previous = next.hash;
    return next;
  });
}

/** Another value of the same type that is well-formed. */
export function otherValue(name: keyof Event, value: Event[keyof Event]): Event[keyof Event] {
  if (typeof value === 'number') return value + 1;
  if (value === null)
    return name.endsWith('Seq') ? 0 : name === 'actorSigPayload' ? {} : (at(4)[name] ?? at(0)[name] ?? 'x');
  if (typeof value === 'object') return { ...(value as JsonObject), note: 'changed' };
  if (name === 'createdAt') return (value as string).replace('39.', '38.');
  const last = (value as string).at(-1);
  return name === 'actorSig' || name === 'authoritySig'
    ? `${(value as string).startsWith('A') ? 'B' : 'A'}${(value as string).slice(1)}`
    : `${(value as string).slice(0, -1)}${last === '1' ? '2' : '1'}`;
}
