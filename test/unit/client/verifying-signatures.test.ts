import { describe, expect, it } from 'vitest';
import { eventToJson } from '../../../src/client/call/answer-encoding.ts';
import { keysFromDocuments } from '../../../src/client/index.ts';
import { digestOf } from '../../../src/client/signing/signing.ts';
import { authorityDigest } from '../../../src/domain/event/content.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { carriedOver, ed25519Vectors } from '../../support/ed25519-vectors.ts';
import { actor, authority, exported } from '../../support/export-of-vectors.ts';
import { identityPoint, signatureOfNonceZero, withLargeS } from '../../support/nonce-zero.ts';
import { runHere } from '../../support/program-here.ts';
import { newShell } from '../../support/shell.ts';
import { at, authorityKey, changed, documentOf, resealed, verify } from '../../support/vector-chain.ts';
import { vectors } from '../../support/vectors.ts';

const { file } = newShell();
const signer = vectors.keys.supplier;
const { eventType, ledgerId, payload } = at(4);
const digest = digestOf({ eventType, ledgerId, canonical: canonicalJson(payload) });
const honest = Buffer.from(at(4).actorSig ?? '', 'base64');
const nonceZero = signatureOfNonceZero(
  Buffer.from(signer.seed_hex, 'hex'),
  Buffer.from(signer.public_key_base64, 'base64'),
  digest,
);
const oddKeys: [string, Buffer][] = [
  ['the identity point', identityPoint],
  ['a point of mixed order', Buffer.from('822822699e3edda8d6bd5a43a13de8da99990724366d0d372628ec4c18679efb', 'hex')],
  ['not in canonical form', Buffer.from(`ee${'ff'.repeat(30)}7f`, 'hex')],
  ['no point', Buffer.alloc(32, 2)],
];

describe('the client and the command line apply the same rules', () => {
  it.each([
    ['whose R is the identity point', nonceZero],
    ['whose S is not reduced', withLargeS(honest)],
  ])('to a signature %s, which is invalid', async (_, signature) => {
    const list = resealed(changed(4, { actorSig: signature.toString('base64') }), 4);
    const { verdict, issues } = await verify(list);
    expect([verdict, issues.map(({ type }) => type)]).toEqual(['invalid', ['invalid_actor_sig']]);
    const path = file(
      'odd.jsonl',
      exported(
        list.map((event) => JSON.parse(eventToJson(event))),
        { kind: 'ledger' },
      ),
    );
    const { code, out } = await runHere(['verify', path, '--trust-file-keys']);
    expect([code, out.includes(`✗ invalid_actor_sig  event ${at(4).id}`)]).toEqual([1, true]);
  });

  it.each(ed25519Vectors)('to the signature of ed25519.json, valid: $valid: $what', async (vector) => {
    const publicKey = Buffer.from(vector.public_key_hex, 'hex').toString('base64');
    const list = resealed(changed(4, { actorSig: carriedOver(vector, digest).toString('base64') }), 4);
    const { issues } = await verify(list, { keys: keysFromDocuments([documentOf({ publicKey })]) });
    // The other events are signed by the key of the vectors of events.
    const ofEvents = new Set(issues.map(({ eventId }) => eventId));
    expect([ofEvents.has(at(4).id), ofEvents.has(at(5).id)]).toEqual([!vector.valid, true]);
    const keys = actor.keys.map((key) => ({ ...key, public_key: publicKey }));
    const lines = list.map((event) => JSON.parse(eventToJson(event)));
    const text = exported(lines, { kind: 'ledger' }, {}, { actor: { ...actor, keys }, authority });
    const { code, out } = await runHere(['verify', file('vector.jsonl', text), '--trust-file-keys']);
    expect([code, out.includes(`event ${at(4).id}`)]).toEqual([1, !vector.valid]);
  });

  it('to a seal whose R is the identity point, which is invalid', async () => {
    const seal = signatureOfNonceZero(
      Buffer.from(vectors.keys.authority.seed_hex, 'hex'),
      Buffer.from(vectors.keys.authority.public_key_base64, 'base64'),
      authorityDigest(at(8).hash),
    );
    const { issues } = await verify(changed(8, { authoritySig: seal.toString('base64') }));
    expect(issues.map(({ type }) => type)).toEqual(['invalid_authority_sig']);
  });

  it.each(oddKeys)('to a key that is %s, under which nothing verifies', async (_, key) => {
    const publicKey = key.toString('base64');
    const anything = Buffer.concat([identityPoint, Buffer.alloc(32)]).toString('base64');
    const signed = resealed(changed(4, { actorSig: anything }), 4);
    const actors = await verify(signed, { keys: keysFromDocuments([documentOf({ publicKey })]) });
    expect(actors.checked.actorSignatures).toBe(0);
    expect(actors.issues.length).toBeGreaterThanOrEqual(7);
    const seals = await verify(changed(8, { authoritySig: anything }), {
      authorityKeys: [{ ...authorityKey, publicKey }],
    });
    expect(seals.checked.authoritySeals).toBe(0);
    expect(seals.issues.map(({ type }) => type)).toEqual(Array(3).fill('invalid_authority_sig'));
  });
});
