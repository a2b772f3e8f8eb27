import { expect, test } from 'vitest';
import { wrongRecordForm } from '../../../src/maintenance/scrub/record-forms.ts';

const at = '2026-01-01T00:00:00.000Z';
const claim = { fingerprint: 'f', state: 'running', time: 1, expires: 2, deadline: 3, sealed: 's' };
const delivery = {
  ...{ id: 'd', subscriptionId: 's', eventId: 'e', eventType: 'NOTE', place: null, eventCreatedAt: at },
  ...{ origin: 'owner', status: 'PENDING', attempts: 0, createdAt: at, nextAttemptAt: at },
};
const key = { kid: 'svc:authority#key-1', publicKey: 'p', validFrom: at, validTo: null, startSig: null };

/** Of each kind: values as versions have stored them, and values that none has stored. */
const kinds: readonly (readonly [kind: string, id: string, sound: readonly unknown[], damaged: readonly unknown[]])[] =
  [
    ['idempotency', 'c', [claim, { ...claim, state: 'done', ledgers: ['l'] }], [{}, { ...claim, ledgers: [7] }]],
    ['entity_request', 'r', [{ claim: null }, { claim: 'c' }], [{}, { claim: 7 }]],
    ['node', 'secrets-key', ['0f'.repeat(32)], [{}, 7, '0F', null]],
    ['webhook_start', 's', [{}, { l: 3, m: -1 }], [{ l: '3' }, 7]],
    ['webhook_changes', 'subscriptions', [1, 12], [{}, -1, '1']],
    ['webhook_cursor', 'l', [{ next_seq: 0 }], [{}, 7]],
    ['webhook_delivery', 'd', [delivery], [{}, { id: 'd' }, { ...delivery, id: 'other' }]],
    ['webhook_delivery_slot', 's|2026-01-01T00:0', [{}], [7]],
    ['webhook_deliveries_slot', 's|2026-01-01T00:0', [{}], [7]],
    [
      ...(['authority', 'keys'] as const),
      [{ keys: [key] }, { keys: [key, { ...key, startSig: 's' }], rotating: true }, { keys: [key], listSig: 's' }],
      [{}, { keys: [7] }, { keys: [{}] }, { keys: [key], listSig: 7 }],
    ],
  ];

test.each(kinds)('a %s record is sound as any version has stored it, and damaged if it has another form', (...row) => {
  const [kind, id, sound, damaged] = row;
  const wrong = (value: unknown) => wrongRecordForm({ kind, id, value: JSON.stringify(value) });
  expect(sound.map(wrong)).toEqual(sound.map(() => null));
  for (const value of [...damaged, [], null, 'text'])
    expect([value, wrong(value)]).toEqual([value, expect.stringContaining(`value is no ${kind}: `)]);
});

test('a record of a kind that a later version has added must only be JSON', () => {
  expect(wrongRecordForm({ kind: 'later', id: 'x', value: '7' })).toBeNull();
  expect(wrongRecordForm({ kind: 'later', id: 'x', value: '{' })).toBe('value is no later: it is no JSON');
});
