import { eventToJson } from '../../src/client/call/answer-encoding.ts';
import { eventContent, readEvent } from '../../src/client/event.ts';
import { digestOf } from '../../src/client/signing/signing.ts';
import { authorityDigest, contentHash, contentJson, eventHash } from '../../src/domain/event/content.ts';
import { canonicalJson } from '../../src/domain/json/canonical.ts';
import { signDigest } from '../../src/domain/keys/key-object.ts';
import { newKeyPair } from './parties.ts';
import { chain } from './vector-chain.ts';

/**
 * The ledger of the vectors as a forger with no key of anybody makes it: an amount, every hash, every signature and
 * every key is its own. Nothing in the file contradicts anything else in it.
 */
export function forgedLedger() {
  const supplier = newKeyPair();
  const authority = newKeyPair();
  const masters = new Map<string, string>();
  let previous = '';
  const events = chain.map((event) => {
    const payload = 'weight' in event.payload ? { ...event.payload, weight: 99 } : event.payload;
    const signed = event.actorSigPayload ?? payload;
    const input = { eventType: event.eventType, ledgerId: event.ledgerId, canonical: canonicalJson(signed) };
    const signature = signDigest(digestOf(input), supplier.privateKey);
    const next = {
      ...event,
      payload: 'requestor_sig' in payload ? { ...payload, requestor_sig: signature } : payload,
      actorSig: event.actorSig === null ? null : signature,
    };
    const before = event.masterId === null ? '' : (masters.get(event.masterId) ?? '');
    const content = contentHash(contentJson(eventContent(readEvent(next), before)));
    const hash = eventHash(previous, content);
    const authoritySig = next.actorSig === null ? signDigest(authorityDigest(hash), authority.privateKey) : null;
    previous = hash;
    if (event.masterId !== null) masters.set(event.masterId, content);
    return { ...next, contentHash: content, hash, authoritySig };
  });
  const json = events.map((event) => JSON.parse(eventToJson(event)));
  return { events, json, supplier: supplier.publicKey, authority: authority.publicKey };
}
