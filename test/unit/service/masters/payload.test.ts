import { expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { checkDeliveryChain } from '../../../../src/service/masters/payload.ts';

const actor = '0199aaaa-0000-7000-8000-000000000001';

test.each([
  ['broken JSON', '[', 'invalid_json', undefined],
  ['more values than a request may have', `[${'0,'.repeat(500_000)}0]`, 'payload_too_large', undefined],
  ['no list', '{}', 'invalid_argument', 'X-Delivery-Chain'],
  ['an item without its members', '[{}]', 'invalid_argument', 'X-Delivery-Chain[0]'],
  [
    'an actor id in upper case',
    JSON.stringify([{ actor_id: actor.toUpperCase(), actor_type: 'external', role: 'CARRIER' }]),
    'invalid_argument',
    'X-Delivery-Chain[0].actor_id',
  ],
  [
    'lists around an actor type, which JavaScript writes as the type itself',
    JSON.stringify([{ actor_id: actor, actor_type: [['external']], role: 'CARRIER' }]),
    'invalid_argument',
    'X-Delivery-Chain[0].actor_type',
  ],
])('a delivery chain with %s is refused with the name of its header', (_name, text, code, field) => {
  const refuse = (): unknown => {
    try {
      return checkDeliveryChain(text);
    } catch (error) {
      return error;
    }
  };
  const error = refuse();
  if (!(error instanceof LedgerError)) throw new Error('The chain is not refused.');
  expect(error).toMatchObject({ code, details: { header: 'X-Delivery-Chain' } });
  expect(error.message).toContain('Header X-Delivery-Chain');
  expect(error.details.field).toBe(field);
});
