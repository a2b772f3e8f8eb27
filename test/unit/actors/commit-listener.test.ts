import { expect, test } from 'vitest';
import { type CommitListener, combineListeners } from '../../../src/actors/ledger/commit-listener.ts';

test('one source tells all listeners of each batch, in their order, and each may leave out what it does not need', () => {
  const told: string[] = [];
  const note =
    (who: string, what: keyof CommitListener) =>
    (ledgerId: string): void =>
      void told.push(`${who} ${what} ${ledgerId}`);
  const all = combineListeners(
    {
      writing: note('webhooks', 'writing'),
      settled: note('webhooks', 'settled'),
      committed: note('webhooks', 'committed'),
      batchInDoubt: note('webhooks', 'batchInDoubt'),
      claimed: note('webhooks', 'claimed'),
    },
    {
      committed: note('followers', 'committed'),
      batchInDoubt: note('followers', 'batchInDoubt'),
      claimed: note('followers', 'claimed'),
    },
  );
  all.writing('l', 3);
  all.committed('l', []);
  all.settled('l');
  all.batchInDoubt('l', []);
  all.claimed('l');
  expect(told).toEqual([
    'webhooks writing l',
    'webhooks committed l',
    'followers committed l',
    'webhooks settled l',
    'webhooks batchInDoubt l',
    'followers batchInDoubt l',
    'webhooks claimed l',
    'followers claimed l',
  ]);
});
