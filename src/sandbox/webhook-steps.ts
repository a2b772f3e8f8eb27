import type { Party } from './party.ts';
import type { Step } from './steps.ts';

/** The part of the story that is about webhooks: the run itself is the receiver. */
export interface WebhookSteps {
  subscribe(owner: Party, ledgerId: () => string): Iterable<Step>;
  received(): Iterable<Step>;
  close(): Promise<void>;
}

/** For a service that delivers to public addresses alone: the run has none, and says so. */
export function skippedWebhookSteps(reason: string): WebhookSteps {
  return {
    *subscribe() {},
    *received() {
      yield { title: 'the webhook step is skipped', run: async () => reason };
    },
    close: async () => {},
  };
}
