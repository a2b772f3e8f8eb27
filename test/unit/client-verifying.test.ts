import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { eventContent, readEvent } from '../../src/client/event.ts';
import {
  type ActorDocument,
  type Event,
  type JsonObject,
  type JsonValue,
  keysFromDocuments,
  type Verification,
  type VerifyOptions,
  verifyEvents,
} from '../../src/client/index.ts';
import { digestOf, ed25519Key } from '../../src/client/signing.ts';
import { canonicalJson } from '../../src/domain/canonical.ts';
import { authorityDigest, contentHash, contentJson, eventHash } from '../../src/domain/content.ts';
import { signDigest } from '../../src/domain/signature.ts';

interface VectorEvent {
  readonly content: {
    readonly [name: string]: JsonValue;
    readonly master: { readonly id: string; readonly seq: number } | null;
  };
  readonly payload: JsonObject;
  readonly actor_sig_payload: JsonObject | null;
  readonly content_hash: string;
  readonly hash: string;
  readonly authority_sig?: string;
  readonly authority_key_id?: string;
}

interface Vectors {
  readonly kid: string;
  readonly keys: {
    readonly [who in 'supplier' | 'authority']: { readonly seed_hex: string; readonly public_key_base64: string };
  };
  readonly chain: readonly VectorEvent[];
}

const vectors = JSON.parse(readFileSync(new URL('../vectors/events.json', import.meta.url), 'utf8')) as Vectors;
const supplier = '0193a000-0000-7000-8000-00000000000a';
const masterA = '0193a000-0000-7000-8000-0000000000aa';

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

const chain: readonly Event[] = vectors.chain.map(eventOf);
const ofMasterA = chain.filter((event) => event.masterId === masterA);

function documentOf(change: Partial<ActorDocument['keys'][number]> = {}): ActorDocument {
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

const authorityKey = {
  kid: 'svc:authority#key-1',
  algorithm: 'Ed25519',
  publicKey: vectors.keys.authority.public_key_base64,
  fingerprint: '',
  validFrom: '2026-11-01T00:00:00.000Z',
  validTo: null,
};
const authorityKeys: NonNullable<VerifyOptions['authorityKeys']> = [authorityKey];
const whole: VerifyOptions = { keys: keysFromDocuments([documentOf()]), authorityKeys, kind: 'ledger' };

const verify = (events: readonly Event[], change: Partial<VerifyOptions> = {}): Promise<Verification> =>
  verifyEvents(events, { ...whole, ...change });

function at(index: number): Event {
  const event = chain[index];
  if (event === undefined) throw new Error(`the vectors have no event ${index}`);
  return event;
}

function changed(index: number, change: Partial<Event>): Event[] {
  return chain.map((event, position) => (position === index ? { ...event, ...change } : event));
}

/** Makes the chain from `index` on consistent again, as a service that forges would. Signatures stay as they are. */
function resealed(events: readonly Event[], index: number, seal = true): Event[] {
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

describe('a whole ledger', () => {
  it('that another program wrote by the rules is valid, with every hash, signature and seal checked', async () => {
    expect(await verify(chain)).toEqual({
      verdict: 'valid',
      verified: true,
      issues: [],
      incomplete: [],
      // Six events that the actor signed, and its request to close the ledger.
      checked: { events: 9, contentHashes: 9, chainHashes: 9, actorSignatures: 7, authoritySeals: 3 },
      head: { seq: 8, hash: at(8).hash },
    });
  });

  it('is valid from an async source too', async () => {
    const source = async function* () {
      yield* chain;
    };
    expect((await verifyEvents(source(), whole)).verdict).toBe('valid');
  });

  it('resealed by the forger of the tests, with nothing changed, is still valid', async () => {
    expect((await verify(resealed(chain, 0))).verdict).toBe('valid');
  });
});

/** Another value of the same type that is well-formed. */
function otherValue(name: keyof Event, value: Event[keyof Event]): Event[keyof Event] {
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

describe('every field of every event, changed alone', () => {
  const names = Object.keys(at(0)) as (keyof Event)[];
  for (const [index, event] of chain.entries()) {
    it(`is found in event ${index}, ${event.eventType}`, async () => {
      for (const name of names) {
        const { verdict, issues } = await verify(changed(index, { [name]: otherValue(name, event[name]) }));
        expect(verdict, `${name} of event ${index}`).toBe('invalid');
        expect(issues.length, name).toBeGreaterThan(0);
      }
    });

    it(`is found in event ${index} when the field is taken away or set to null`, async () => {
      for (const name of names) {
        if (
          event[name] === null ||
          ['id', 'ledgerId', 'seq', 'eventType', 'hash', 'contentHash', 'createdAt', 'payload', 'actorType'].includes(
            name,
          )
        )
          continue;
        expect((await verify(changed(index, { [name]: null }))).verdict, `${name} of event ${index}`).toBe('invalid');
      }
    });

    it(`is found in event ${index} for every member of its payloads`, async () => {
      for (const [name, value] of Object.entries(event.payload)) {
        const { [name]: _, ...rest } = event.payload;
        expect((await verify(changed(index, { payload: rest }))).verdict, `without ${name}`).toBe('invalid');
        const other = { ...event.payload, [name]: typeof value === 'string' ? `${value}x` : 'x' };
        expect((await verify(changed(index, { payload: other }))).verdict, `other ${name}`).toBe('invalid');
      }
      for (const name of Object.keys(event.actorSigPayload ?? {})) {
        const { [name]: _, ...rest } = event.actorSigPayload ?? {};
        expect((await verify(changed(index, { actorSigPayload: rest }))).verdict, `signed without ${name}`).toBe(
          'invalid',
        );
      }
    });
  }

  it('names the event that was changed', async () => {
    const { issues } = await verify(changed(4, { payload: { ...at(4).payload, weight: 13 } }));
    expect(issues.map((issue) => [issue.eventId, issue.type])).toEqual([
      [at(4).id, 'hash_mismatch'],
      [at(4).id, 'invalid_actor_sig'],
    ]);
  });
});

describe('the order of events', () => {
  it.each(chain.slice(0, -1).map((_, index) => index))('a ledger without event %i is not valid', async (index) => {
    const { verdict, issues } = await verify(chain.filter((_, position) => position !== index));
    // Without its first event a list might as well be the rest of a longer one: nothing is wrong, and it is not whole.
    expect(verdict).toBe(index === 0 ? 'incomplete' : 'invalid');
    if (index > 0) expect(issues.some(({ type }) => type === 'missing_event')).toBe(true);
  });

  it.each(chain.slice(0, -1).map((_, index) => index))(
    'events %i and the next one swapped are found',
    async (index) => {
      const swapped = [...chain];
      swapped.splice(index, 2, at(index + 1), at(index));
      expect((await verify(swapped)).verdict).toBe('invalid');
    },
  );

  it.each(chain.map((_, index) => index))('event %i given twice is found', async (index) => {
    const { verdict, issues } = await verify([...chain.slice(0, index + 1), ...chain.slice(index)]);
    expect(verdict).toBe('invalid');
    expect(issues.some(({ type }) => type === 'broken_link')).toBe(true);
  });

  it('a list cut short at its end looks whole, unless a later hash is known', async () => {
    const short = chain.slice(0, 6);
    expect((await verify(short)).verdict).toBe('valid');
    const { verdict, issues } = await verify(short, { mustContain: [at(2).hash, at(7).hash] });
    expect(verdict).toBe('invalid');
    expect(issues).toMatchObject([{ type: 'missing_event' }]);
    expect(issues[0]?.detail).toContain(at(7).hash);
  });

  it('a list that begins in the middle is incomplete, and what can be checked is', async () => {
    const { verdict, incomplete, checked } = await verify(chain.slice(4));
    expect(verdict).toBe('incomplete');
    expect(incomplete.map(({ type, count }) => [type, count])).toEqual([
      ['start_unknown', 1],
      ['content_unchecked', 2],
      ['hash_unchecked', 1],
    ]);
    expect(checked).toMatchObject({ events: 5, contentHashes: 3, chainHashes: 4, actorSignatures: 5 });
  });

  it('a change in the middle of a list that begins in the middle is still found', async () => {
    expect((await verify(changed(6, { actorType: 'human' }).slice(4))).verdict).toBe('invalid');
  });

  it('events of two ledgers in one list are found', async () => {
    const other = '0193a000-0000-7000-8000-000000000009';
    const moved = resealed(
      chain.map((event, index) => (index >= 5 ? { ...event, ledgerId: other } : event)),
      5,
    );
    expect((await verify(moved)).issues.map(({ type }) => type)).toContain('broken_link');
  });

  it('nothing at all is valid and says so by its counts', async () => {
    expect(await verify([])).toMatchObject({ verdict: 'valid', checked: { events: 0 }, head: null });
  });
});

describe('the events of one master', () => {
  const options: Partial<VerifyOptions> = { kind: 'master' };

  it('form a chain of contents, and say that their chain hashes were not all checked', async () => {
    const { verdict, incomplete, checked } = await verify(ofMasterA, options);
    expect(verdict).toBe('incomplete');
    expect(incomplete.map(({ type }) => type)).toEqual(['hash_unchecked']);
    expect(checked).toMatchObject({ events: 4, contentHashes: 4, actorSignatures: 4 });
  });

  it.each([1, 2])('without event %i are found to be cut', async (index) => {
    const { verdict, issues } = await verify(
      ofMasterA.filter((_, position) => position !== index),
      options,
    );
    expect(verdict).toBe('invalid');
    expect(issues).toContainEqual(expect.objectContaining({ type: 'missing_event' }));
  });

  it('without the first one are incomplete', async () => {
    const { incomplete } = await verify(ofMasterA.slice(1), options);
    expect(incomplete.map(({ type }) => type)).toContain('start_unknown');
  });

  it('with an event of a sibling master are found', async () => {
    const sibling = at(5);
    expect((await verify([...ofMasterA.slice(0, 2), sibling, ...ofMasterA.slice(2)], options)).verdict).toBe('invalid');
  });

  it('renumbered to hide a gap are found, whatever hashes are shown', async () => {
    const [first, , third] = ofMasterA;
    if (first === undefined || third === undefined) throw new Error('the vectors changed');
    const moved = { ...third, masterSeq: 1 };
    const content = contentHash(contentJson(eventContent(readEvent(moved), 'f'.repeat(64))));
    expect((await verify([first, { ...moved, contentHash: content }], options)).verdict).toBe('invalid');
  });

  it('every field but the chain hash, changed alone, is found', async () => {
    for (const [index, event] of ofMasterA.entries()) {
      for (const name of Object.keys(event) as (keyof Event)[]) {
        if (name === 'hash') continue;
        const list = ofMasterA.map((held, at) =>
          at === index ? { ...held, [name]: otherValue(name, held[name]) } : held,
        );
        expect((await verify(list, options)).verdict, `${name} of ${index}`).toBe('invalid');
      }
    }
  });
});

describe('a segment', () => {
  it('may have gaps, and is never taken for whole', async () => {
    const { verdict, issues } = await verify([at(0), at(2), at(4), at(7)], { kind: 'segment' });
    expect(verdict).toBe('incomplete');
    expect(issues).toEqual([]);
  });

  it('out of order is found', async () => {
    expect((await verify([at(0), at(4), at(2)], { kind: 'segment' })).verdict).toBe('invalid');
  });
});

describe('signatures and seals', () => {
  it('without the resolver document of the signer are incomplete, not valid', async () => {
    const { verdict, incomplete } = await verify(chain, { keys: keysFromDocuments([]) });
    expect(verdict).toBe('incomplete');
    expect(incomplete).toMatchObject([{ type: 'actor_keys_unknown', count: 7, eventId: at(2).id }]);
  });

  it('without the authority’s keys are incomplete, not valid', async () => {
    const { verdict, incomplete } = await verify(chain, { authorityKeys: null });
    expect(verdict).toBe('incomplete');
    expect(incomplete).toMatchObject([{ type: 'authority_keys_unknown', count: 3 }]);
  });

  const keyFaults: [string, Parameters<typeof documentOf>[0]][] = [
    ['revoked before the event', { status: 'REVOKED', revokedAt: '2026-11-21T02:06:39.102Z' }],
    ['valid only after the event', { validFrom: '2026-11-21T02:06:39.103Z' }],
    ['revoked without a time', { status: 'REVOKED' }],
    ['another public key', { publicKey: vectors.keys.authority.public_key_base64 }],
    ['a key of small order', { publicKey: 'AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' }],
    ['no key at all', { publicKey: '' }],
    ['another name', { kid: `svc:actor:${supplier}#key-2` }],
  ];
  it.each(keyFaults)('under a key %s are invalid', async (_, change) => {
    const { verdict, issues } = await verify(chain, { keys: keysFromDocuments([documentOf(change)]) });
    expect(verdict).toBe('invalid');
    expect(issues.every(({ type }) => type === 'invalid_actor_sig')).toBe(true);
  });

  it('made before their key was revoked stay valid', async () => {
    const keys = keysFromDocuments([documentOf({ status: 'REVOKED', revokedAt: '2026-11-21T02:06:39.109Z' })]);
    expect((await verify(chain, { keys })).verdict).toBe('valid');
  });

  it('under the document of another actor are invalid', async () => {
    const other = { ...documentOf(), actorId: '0193a000-0000-7000-8000-00000000000b' };
    expect((await verify(chain, { keys: { document: () => other } })).verdict).toBe('invalid');
  });

  it('of the authority under a key that had ended are invalid', async () => {
    const ended = [{ ...authorityKey, validTo: '2026-11-20T00:00:00.000Z' }];
    const { issues } = await verify(chain, { authorityKeys: ended });
    expect(issues.map(({ type }) => type)).toEqual(Array(3).fill('invalid_authority_sig'));
  });
});

describe('a forger who recomputes every hash after the change and holds the authority’s key', () => {
  const forged = async (index: number, change: Partial<Event>) => verify(resealed(changed(index, change), index));

  it('cannot change what an actor signed', async () => {
    const { issues } = await forged(4, { payload: { ...at(4).payload, weight: 13 } });
    expect(issues.map(({ type }) => type)).toEqual(['invalid_actor_sig']);
  });

  it('cannot change a stored payload whose signed part is kept beside it', async () => {
    const { issues } = await forged(5, { payload: { ...at(5).payload, note: 'other' } });
    expect(issues).toMatchObject([{ type: 'contradiction', detail: expect.stringContaining('note') }]);
  });

  it('cannot add to what was signed, except where the service adds', async () => {
    const { issues } = await forged(5, { payload: { ...at(5).payload, approved: true } });
    expect(issues).toMatchObject([{ type: 'contradiction', detail: expect.stringContaining('approved') }]);
    const grant = await forged(6, { payload: { ...at(6).payload, expires_at: '2030-01-01T00:00:00Z' } });
    expect(grant.verdict).toBe('invalid');
  });

  it('cannot raise a grant', async () => {
    const { issues } = await forged(6, { payload: { ...at(6).payload, permissions: { access: 'write' } } });
    expect(issues).toMatchObject([{ type: 'contradiction', detail: expect.stringContaining('permissions') }]);
  });

  it('cannot take the signature away', async () => {
    const document = documentOf({ validFrom: '2026-11-21T00:00:00.000Z' });
    const bare = { actorSig: null, signingKeyId: null, actorSigPayload: null, authorityKeyId: 'svc:authority#key-1' };
    const list = resealed(changed(4, bare), 4);
    const { issues } = await verify(list, { keys: keysFromDocuments([document]) });
    expect(issues.map(({ type, eventId }) => [type, eventId])).toEqual([['invalid_actor_sig', at(4).id]]);
  });

  it('cannot move a signed event to another master', async () => {
    const sibling = '0193a000-0000-7000-8000-0000000000bb';
    const { issues } = await forged(4, { masterId: sibling, masterSeq: 1 });
    expect(issues.map(({ type }) => type)).toContain('contradiction');
  });

  it('cannot close the ledger in somebody’s name without the request', async () => {
    const { requestor_sig: _, ...payload } = at(8).payload;
    expect((await forged(8, { payload })).verdict).toBe('invalid');
    const sig = at(4).actorSig;
    expect((await forged(8, { payload: { ...at(8).payload, requestor_sig: sig } })).verdict).toBe('invalid');
  });

  it('cannot sign as another actor with a key of its own', async () => {
    const kid = `svc:actor:${supplier}#key-1`;
    const other = '0193a000-0000-7000-8000-00000000000b';
    expect((await forged(4, { actorId: other, signingKeyId: kid })).verdict).toBe('invalid');
  });

  it('cannot restate the cause of an event', async () => {
    const { issues } = await forged(5, { causedByHash: at(1).hash });
    expect(issues).toMatchObject([{ type: 'contradiction', detail: expect.stringContaining('caused_by_hash') }]);
  });

  it('cannot give a master another reference in an event that was signed as submitted', async () => {
    const submitted = { traceledger_master_uuid: masterA, carrier: 'BlueDart' };
    const signer = ed25519Key(Buffer.from(vectors.keys.supplier.seed_hex, 'hex'));
    const input = { eventType: 'SHIPMENT_DISPATCHED', ledgerId: at(4).ledgerId, canonical: canonicalJson(submitted) };
    const actorSig = signDigest(digestOf(input), signer);
    const names = { ...at(2).payload, ledger_id: undefined };
    const { ledger_id: _, ...injected } = names;
    const good = { ...injected, ...submitted } as JsonObject;
    const fields = { actorSig, actorSigPayload: submitted };
    expect((await forged(4, { ...fields, payload: good })).verdict).toBe('valid');
    for (const name of ['business_ref', 'scope', 'buyer_actor_id', 'supplier_actor_id']) {
      expect((await forged(4, { ...fields, payload: { ...good, [name]: 'other' } })).verdict, name).toBe('invalid');
    }
    const { business_ref: __, ...without } = good;
    expect((await forged(4, { ...fields, payload: without })).verdict).toBe('invalid');
  });

  it('cannot date an event before the one before it', async () => {
    const { issues } = await forged(5, { createdAt: '2026-11-21T02:06:39.103Z' });
    expect(issues.map(({ type, eventId }) => [type, eventId])).toEqual([['broken_link', at(5).id]]);
  });

  it('cannot give two events one place in their master', async () => {
    const { issues } = await forged(6, { masterSeq: 1 });
    expect(issues.map(({ type, eventId }) => [type, eventId])).toContainEqual(['broken_link', at(6).id]);
  });

  it('cannot bring in a key under which every signature verifies', async () => {
    // OpenSSL 3.0 verifies this signature of anything; 3.5.8 does not. The client relies on neither.
    const identityPoint = Buffer.from([1, ...new Uint8Array(31)]);
    const anySignature = Buffer.concat([identityPoint, Buffer.alloc(32)]).toString('base64');
    const weak = keysFromDocuments([documentOf({ publicKey: identityPoint.toString('base64') })]);
    const list = resealed(
      chain.map((event) => (event.actorSig === null ? event : { ...event, actorSig: anySignature })),
      0,
    );
    const { issues } = await verify(list, { keys: weak });
    expect(issues.filter(({ type }) => type === 'invalid_actor_sig')).toHaveLength(7);
  });

  it('cannot put an event of the ledger into a master, or begin a ledger twice or otherwise', async () => {
    expect((await forged(8, { masterId: masterA, masterSeq: 4 })).verdict).toBe('invalid');
    expect((await forged(1, { eventType: 'GENESIS', actorId: null })).verdict).toBe('invalid');
    expect((await forged(0, { eventType: 'ORDER_OPENED', actorId: supplier })).verdict).toBe('invalid');
  });

  it('cannot take a signature that names no master for one of this master', async () => {
    const signer = ed25519Key(Buffer.from(vectors.keys.supplier.seed_hex, 'hex'));
    const actorSigPayload = { carrier: 'BlueDart' };
    const input = {
      eventType: 'SHIPMENT_DISPATCHED',
      ledgerId: at(4).ledgerId,
      canonical: canonicalJson(actorSigPayload),
    };
    const { ledger_id: _, ...injected } = at(2).payload;
    const change = {
      actorSig: signDigest(digestOf(input), signer),
      actorSigPayload,
      payload: { ...injected, ...actorSigPayload },
    };
    const { issues } = await forged(4, change);
    expect(issues).toMatchObject([
      { type: 'contradiction', detail: expect.stringContaining('does not name the master') },
    ]);
  });

  it('cannot lend a sealed event the look of a signed one', async () => {
    expect((await forged(1, { signingKeyId: vectors.kid })).verdict).toBe('invalid');
    expect((await forged(1, { actorSigPayload: at(1).payload })).verdict).toBe('invalid');
  });

  it('that lacks the authority’s key cannot change what it sealed', async () => {
    const payload = { ...at(1).payload, supplier_actor_id: at(5).id };
    const { issues } = await verify(resealed(changed(1, { payload }), 1, false));
    expect(issues.map(({ type }) => type)).toContain('invalid_authority_sig');
  });
});

describe('what is no event', () => {
  const odd: [string, Partial<Event>][] = [
    ['an upper-case id', { id: at(4).id.toUpperCase() }],
    ['a fraction as seq', { seq: 4.5 }],
    ['a short hash', { hash: 'abc' }],
    ['a time without milliseconds', { createdAt: '2026-11-21T02:06:39Z' }],
    ['a NUL in the type', { eventType: 'A\0B' }],
    ['a number that JSON cannot say', { payload: { weight: Number.POSITIVE_INFINITY } }],
    ['half a surrogate pair', { payload: { note: '\ud800' } }],
  ];
  it.each(odd)('%s is malformed and does not end the verification', async (_, change) => {
    const { verdict, issues, checked } = await verify(changed(4, change));
    expect(verdict).toBe('invalid');
    expect(issues[0]).toMatchObject({ type: 'malformed_event' });
    expect(checked.events).toBe(9);
  });
});
