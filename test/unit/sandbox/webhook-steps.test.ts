import { expect, onTestFinished, test } from 'vitest';
import type { Party } from '../../../src/sandbox/party.ts';
import { webhookSteps } from '../../../src/sandbox/webhook-steps.ts';

const { signal } = new AbortController();

/**
 * A party whose subscriptions get the ids 1, 2, 3 and so on; each deletion is told, and answered as `afterDeletion`
 * says.
 */
function subscriber(afterDeletion: () => Promise<void> = async () => {}) {
  const [made, deleted]: [string[], string[]] = [[], []];
  const client = {
    createWebhook: async () => {
      made.push(String(made.length + 1));
      return { id: made.at(-1), secret: 'whsec_x' };
    },
    deleteWebhook: async ({ id }: { id: string }) => {
      deleted.push(id);
      await afterDeletion();
    },
  };
  return { made, deleted, party: { name: 'bank', client } as unknown as Party };
}

test.each([
  [1, ['1'], []],
  [3, ['1', '2', '3'], ['1', '2']],
])('the run subscribes until this node sends for it: attempt %i', async (own, expectedMade, expectedDeleted) => {
  const { made, deleted, party } = subscriber();
  const steps = webhookSteps((id) => id === String(own));
  onTestFinished(() => steps.close());
  for (const step of steps.subscribe(party, () => 'ledger')) await step.run(signal);
  expect([made, deleted]).toEqual([expectedMade, expectedDeleted]);
});

test.each([
  ['and nothing came of it', async () => {}],
  ['while the service refuses to end it', async () => Promise.reject(new Error('the service is stopping'))],
])('a run that ends before its delivery leaves no subscription, %s', async (_, refusal) => {
  const { made, deleted, party } = subscriber(refusal);
  const steps = webhookSteps(() => true);
  for (const step of steps.subscribe(party, () => 'ledger')) await step.run(signal);
  await steps.close();
  expect([made, deleted]).toEqual([['1'], ['1']]);
});

test('a subscription that could not be deleted is deleted with the run', async () => {
  let isFirst = true;
  const { deleted, party } = subscriber(async () => {
    if (!isFirst) return;
    isFirst = false;
    throw new Error('the service is stopping');
  });
  const steps = webhookSteps(() => false);
  for (const step of steps.subscribe(party, () => 'ledger')) await expect(step.run(signal)).rejects.toThrow();
  await steps.close();
  expect(deleted).toEqual(['1', '1']);
});

test('the run continues with its last subscription if this node sends for none', async () => {
  const { made, deleted, party } = subscriber();
  const steps = webhookSteps(() => false);
  onTestFinished(() => steps.close());
  for (const step of steps.subscribe(party, () => 'ledger')) await step.run(signal);
  expect([made.length, deleted.length]).toEqual([64, 63]);
});
