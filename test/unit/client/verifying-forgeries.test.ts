import { describe, expect, it } from 'vitest';
import { type Event, type JsonObject, keysFromDocuments } from '../../../src/client/index.ts';
import { digestOf, ed25519Key } from '../../../src/client/signing/signing.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { signDigest } from '../../../src/domain/keys/signature.ts';
import {
  at,
  authorityKey,
  chain,
  changed,
  documentOf,
  masterA,
  resealed,
  supplier,
  verify,
} from '../../support/vector-chain.ts';
import { vectors } from '../../support/vectors.ts';

describe('signatures and seals', () => {
  it('are incomplete without the document of the signer', async () => {
    const { verdict, incomplete } = await verify(chain, { keys: keysFromDocuments([]) });
    expect(verdict).toBe('incomplete');
    expect(incomplete).toMatchObject([{ type: 'actor_keys_unknown', count: 7, eventId: at(2).id }]);
  });

  it('are incomplete without the keys of the authority', async () => {
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
  it.each(keyFaults)('are invalid under a key that is %s', async (_, change) => {
    const { verdict, issues } = await verify(chain, { keys: keysFromDocuments([documentOf(change)]) });
    expect(verdict).toBe('invalid');
    expect(issues.every(({ type }) => type === 'invalid_actor_sig')).toBe(true);
  });

  it('stay valid if they are older than the revocation of their key', async () => {
    const keys = keysFromDocuments([documentOf({ status: 'REVOKED', revokedAt: '2026-11-21T02:06:39.109Z' })]);
    expect((await verify(chain, { keys })).verdict).toBe('valid');
  });

  it('are invalid under the document of another actor', async () => {
    const other = { ...documentOf(), actorId: '0193a000-0000-7000-8000-00000000000b' };
    expect((await verify(chain, { keys: { document: () => other } })).verdict).toBe('invalid');
  });

  it('are invalid under a key of the authority that had ended', async () => {
    const ended = [{ ...authorityKey, validTo: '2026-11-20T00:00:00.000Z' }];
    const { issues } = await verify(chain, { authorityKeys: ended });
    expect(issues.map(({ type }) => type)).toEqual(Array(3).fill('invalid_authority_sig'));
  });
});

describe('a forger with recomputed hashes and the key of the authority', () => {
  const forged = async (index: number, change: Partial<Event>) => verify(resealed(changed(index, change), index));

  it('cannot change what an actor signed', async () => {
    const { issues } = await forged(4, { payload: { ...at(4).payload, weight: 13 } });
    expect(issues.map(({ type }) => type)).toEqual(['invalid_actor_sig']);
  });

  it('cannot change a payload beside its signed form', async () => {
    const { issues } = await forged(5, { payload: { ...at(5).payload, note: 'other' } });
    expect(issues).toMatchObject([{ type: 'contradiction', detail: expect.stringContaining('note') }]);
  });

  it('cannot add fields to a signed payload', async () => {
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

  it('cannot close the ledger without a signed request', async () => {
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

  it('cannot change the cause of an event', async () => {
    const { issues } = await forged(5, { causedByHash: at(1).hash });
    expect(issues).toMatchObject([{ type: 'contradiction', detail: expect.stringContaining('caused_by_hash') }]);
  });

  it('cannot change a reference in an event that was signed as submitted', async () => {
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

  it('cannot date an event before an earlier one', async () => {
    const { issues } = await forged(5, { createdAt: '2026-11-21T02:06:39.103Z' });
    expect(issues.map(({ type, eventId }) => [type, eventId])).toEqual([['broken_link', at(5).id]]);
  });

  it('cannot give two events the same number in a master', async () => {
    const { issues } = await forged(6, { masterSeq: 1 });
    expect(issues.map(({ type, eventId }) => [type, eventId])).toContainEqual(['broken_link', at(6).id]);
  });

  it('cannot use a key under which every signature verifies', async () => {
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

  it('cannot move an event of the ledger into a master, or change how a ledger begins', async () => {
    expect((await forged(8, { masterId: masterA, masterSeq: 4 })).verdict).toBe('invalid');
    expect((await forged(1, { eventType: 'GENESIS', actorId: null })).verdict).toBe('invalid');
    expect((await forged(0, { eventType: 'ORDER_OPENED', actorId: supplier })).verdict).toBe('invalid');
  });

  it('cannot use a signature that does not name the master', async () => {
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

  it('cannot disguise a sealed event as a signed one', async () => {
    expect((await forged(1, { signingKeyId: vectors.kid })).verdict).toBe('invalid');
    expect((await forged(1, { actorSigPayload: at(1).payload })).verdict).toBe('invalid');
  });

  it('cannot change a sealed event without the key of the authority', async () => {
    const payload = { ...at(1).payload, supplier_actor_id: at(5).id };
    const { issues } = await verify(resealed(changed(1, { payload }), 1, false));
    expect(issues.map(({ type }) => type)).toContain('invalid_authority_sig');
  });
});
