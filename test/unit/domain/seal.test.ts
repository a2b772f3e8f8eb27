import { describe, expect, test } from 'vitest';
import { contentHash, eventHash } from '../../../src/domain/event/content.ts';
import { canonicalJson } from '../../../src/domain/json/canonical.ts';
import { sha256Hex } from '../../../src/domain/keys/hash.ts';
import type { Draft } from '../../../src/domain/ledger/decide.ts';
import { type Place, sealEvent } from '../../../src/domain/ledger/seal.ts';
import { commandKey, ledgerId, masterId, supplier, uuid } from '../../support/commands.ts';
import { authority, isSealed, start } from '../../support/world.ts';

const draft: Draft = {
  eventType: 'SHIPMENT_DISPATCHED',
  actorId: supplier,
  actorType: 'device',
  payload: '{"a":1}',
  masterId,
  causedByHash: 'cd'.repeat(32),
  actorSig: null,
  actorSigPayload: null,
  signingKeyId: null,
  commands: [commandKey('k1')],
};
const place: Place = {
  id: uuid(9),
  ledgerId,
  seq: 4,
  prevHash: 'ab'.repeat(32),
  createdAt: start,
  master: { id: masterId, prevHash: 'ef'.repeat(32), seq: 1 },
};

describe('a draft becomes an event', () => {
  test('has the draft and its place as content, and the hashes of the rules', () => {
    const { event, content } = sealEvent(draft, place, authority);
    expect(JSON.parse(content)).toEqual({
      actor_id: supplier,
      actor_sig: null,
      actor_sig_payload_hash: null,
      actor_type: 'device',
      caused_by_hash: 'cd'.repeat(32),
      created_at: start,
      event_type: 'SHIPMENT_DISPATCHED',
      id: uuid(9),
      ledger_id: ledgerId,
      master: { id: masterId, prev_hash: 'ef'.repeat(32), seq: 1 },
      payload_hash: sha256Hex('{"a":1}'),
      seq: 4,
      signing_key_id: null,
    });
    expect(content).toBe(canonicalJson(JSON.parse(content)));
    expect(event.contentHash).toBe(contentHash(content));
    expect(event.hash).toBe(eventHash(place.prevHash, event.contentHash));
    expect(event.commands).toEqual([commandKey('k1')]);
  });

  test('carries the seal of the authority if it has no signature of its actor', () => {
    const { event } = sealEvent(draft, place, authority);
    expect(event.authorityKeyId).toBe('svc:authority#key-1');
    expect(isSealed(event)).toBe(true);
    expect(isSealed({ ...event, hash: 'ab'.repeat(32) })).toBe(false);
  });

  test('carries no seal if its actor signed, and the authority is not asked', () => {
    const signed = { ...draft, actorSig: 'c2ln', actorSigPayload: '{}', signingKeyId: 'kid' };
    const unasked = {
      ...authority,
      sign: () => {
        throw new Error('asked');
      },
    };
    const { event } = sealEvent(signed, place, unasked);
    expect([event.authoritySig, event.authorityKeyId]).toEqual([null, null]);
    expect(event.actorSigPayloadHash).toBe(sha256Hex('{}'));
  });

  test('has a hash that does not cover its command keys', () => {
    const without = sealEvent({ ...draft, commands: [] }, place, authority);
    expect(without.event.hash).toBe(sealEvent(draft, place, authority).event.hash);
  });
});
