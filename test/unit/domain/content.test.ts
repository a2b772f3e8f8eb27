import { describe, expect, test } from 'vitest';
import { authorityDigest, contentHash, contentJson, eventHash } from '../../../src/domain/event/content.ts';
import type { EventContent } from '../../../src/domain/event/event.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { sha256Buffer } from '../../../src/domain/keys/hash-buffer.ts';
import { type VectorEvent, vectors } from '../../support/vectors.ts';
import { authorityOf } from '../../support/world.ts';

function contentOf({ content }: VectorEvent): EventContent {
  const { master } = content;
  return {
    id: content.id,
    ledgerId: content.ledger_id,
    seq: content.seq,
    eventType: content.event_type,
    actorId: content.actor_id,
    actorType: content.actor_type,
    createdAt: content.created_at,
    causedByHash: content.caused_by_hash,
    master: master && { id: master.id, prevHash: master.prev_hash, seq: master.seq },
    payloadHash: content.payload_hash,
    actorSig: content.actor_sig,
    actorSigPayloadHash: content.actor_sig_payload_hash,
    signingKeyId: content.signing_key_id,
  } as EventContent;
}

describe('golden vectors', () => {
  const named = vectors.chain.map((golden) => [`${golden.content.seq} ${golden.content.event_type}`, golden] as const);

  test('the vectors contain events of every kind of attribution', () => {
    expect(vectors.chain.length).toBeGreaterThan(8);
    expect(vectors.chain.some(({ content }) => content.actor_sig_payload_hash !== null)).toBe(true);
    expect(vectors.chain.some(({ content }) => content.caused_by_hash !== null)).toBe(true);
  });

  test.each(named)('event %s has the canonical content and content hash of the vectors', (_, golden) => {
    expect(contentJson(contentOf(golden))).toBe(golden.canonical_content);
    expect(contentJson(contentOf(golden))).toBe(canonicalJson(golden.content));
    expect(contentHash(golden.canonical_content)).toBe(golden.content_hash);
  });

  test.each(named)('event %s has the chain hash of the vectors', (_, golden) => {
    expect(eventHash(golden.prev_hash, golden.content_hash)).toBe(golden.hash);
  });

  test.each(named)(
    'event %s has the payload hashes of the vectors',
    (_, { content, payload, actor_sig_payload: signed }) => {
      expect(contentHash(canonicalJson(payload))).toBe(content.payload_hash);
      expect(signed === null ? null : contentHash(canonicalJson(signed))).toBe(content.actor_sig_payload_hash);
    },
  );

  test.each(named.filter(([, { authority_sig }]) => authority_sig !== undefined))(
    'event %s has the seal of the vectors',
    (_, golden) => {
      const authority = authorityOf(vectors.keys.authority.seed_hex);
      expect(authority.sign(authorityDigest(golden.hash), '')).toBe(golden.authority_sig);
    },
  );
});

describe('hashes and content', () => {
  const hash = 'ab'.repeat(32);

  test('the chain hash of the first event covers no previous hash, all others cover its 32 bytes', () => {
    const prefix = Buffer.from('svc-event-v1\0', 'ascii');
    const content = Buffer.from(hash, 'hex');
    expect(eventHash('', hash)).toBe(sha256Buffer(Buffer.concat([prefix, content])).toString('hex'));
    const previous = Buffer.from('cd'.repeat(32), 'hex');
    const expected = sha256Buffer(Buffer.concat([prefix, previous, content])).toString('hex');
    expect(eventHash(previous.toString('hex'), hash)).toBe(expected);
  });

  test('a chain hash and the digest of the seal differ by their prefix', () => {
    expect(Buffer.from(authorityDigest(hash)).toString('hex')).not.toBe(eventHash('', hash));
  });

  test('text that looks like JSON stays inside its field', () => {
    const [golden] = vectors.chain;
    if (golden === undefined) throw new Error('no vectors');
    const tricky = { ...contentOf(golden), actorId: 'x","seq":99,"a":"\u2028\n\\', causedByHash: '\u0000' };
    const read = JSON.parse(contentJson(tricky)) as Record<string, unknown>;
    expect(read.actor_id).toBe(tricky.actorId);
    expect(read.seq).toBe(golden.content.seq);
    expect(contentJson(tricky)).toBe(canonicalJson(read));
  });
});
