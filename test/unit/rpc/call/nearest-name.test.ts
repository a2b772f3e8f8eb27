import { expect, test } from 'vitest';
import { nearestName } from '../../../../src/rpc/call/nearest-name.ts';

const known = ['ledger_type', 'status', 'role', 'limit', 'offset', 'order', 'counterparty_actor_id', 'from', 'to'];

test.each([
  ['staus', 'status'],
  ['Status', 'status'],
  ['limits', 'limit'],
  ['ofset', 'offset'],
  ['ledgerType', 'ledger_type'],
  ['type', 'ledger_type'],
  ['counterparty', 'counterparty_actor_id'],
  ['actor_id', 'counterparty_actor_id'],
  ['created_from', 'from'],
  ['created_to', 'to'],
  ['fron', 'from'],
  ['', 'to'],
])('%s most likely means %s', (name, nearest) => {
  expect(nearestName(name, known)).toBe(nearest);
});

test('without known names there is no nearest one', () => {
  expect(nearestName('status', [])).toBe(null);
});
