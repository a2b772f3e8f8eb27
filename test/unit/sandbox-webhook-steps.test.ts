import { expect, test } from 'vitest';
import type { Party } from '../../src/sandbox/party.ts';
import { webhookSteps } from '../../src/sandbox/webhook-steps.ts';

/** A party whose subscriptions get the ids 1, 2, 3 and so on. */
function subscriber() {
  const [made, deleted]: [string[], string[]] = [[], []];
  const client = {
    createWebhook: async () => {
      made.push(String(made.length + 1));
      return { id: made.at(-1), secret: 'whsec_x' };
    },
    deleteWebhook: async ({ id }: { id: string }) => void deleted.push(id),
  };
  return { made, deleted, party: { name: 'bank', client } as unknown as Party };
}

test.each([
  [1, ['1'], []],
  [3, ['1', '2', '3'], ['1', '2']],
])('the run subscribes until this node sends for it: at the %i. try', async (own, expectedMade, expectedDeleted) => {
  const { made, deleted, party } = subscriber();
  const steps = webhookSteps((id) => id === String(own));
  try {
    for (const step of steps.subscribe(party, () => 'ledger')) await step.run();
    expect([made, deleted]).toEqual([expectedMade, expectedDeleted]);
  } finally {
    await steps.close();
  }
});

test('where this node sends for none it goes on with the last one', async () => {
  const { made, deleted, party } = subscriber();
  const steps = webhookSteps(() => false);
  try {
    for (const step of steps.subscribe(party, () => 'ledger')) await step.run();
    expect([made.length, deleted.length]).toEqual([64, 63]);
  } finally {
    await steps.close();
  }
});
