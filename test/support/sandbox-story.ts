import { expect } from 'vitest';

const registered = ['supplier', 'buyer', 'auditor', 'carrier', 'bank'].map(
  (name) => `the ${name} registers and enrols a signing key`,
);

/** What a run tells, in order: `subscribed` and `received` are its lines about the webhook. */
function storyOf(subscribed: readonly string[], received: string): string[] {
  return [
    ...registered,
    'anyone finds the supplier’s public key through the resolver',
    'the supplier onboards its organization and gets a root ledger',
    'the buyer onboards its organization and gets a root ledger',
    'the buyer opens a ledger with the supplier',
    'a stranger is told that there is no such ledger',
    'an unsigned call of an actor with keys is refused',
    'the supplier creates a master for the shipment, signed',
    ...subscribed,
    'the supplier records PRODUCTION_STARTED',
    'the same call again, with its idempotency key, writes nothing new',
    'a signature by somebody else’s key is refused',
    'the supplier lets the carrier write to this master',
    'the carrier records SHIPMENT_DISPATCHED, caused by the production',
    'the buyer lets the auditor read the ledger',
    'the auditor reads everything and finds it whole',
    'the auditor may not write',
    'the supplier creates a master for the invoice and records INVOICE_RAISED',
    'the supplier lets the bank read the invoice, for a day',
    'the bank sees the invoice, and of the shipment nothing',
    'the supplier takes the carrier’s access back',
    'the carrier can neither write nor read any more',
    'the proof of delegation shows the grant and its end',
    received,
    'the supplier closes the shipment’s master; nothing more is taken',
    'the buyer closes the ledger, sealed by the authority; nothing more is taken',
    'the buyer downloads the ledger and verifies it without trusting the server',
    'the bank verifies its one master by itself',
    'a copy with a changed amount',
    'a copy with an event left out',
    'a copy with an event put under another actor’s name',
    'a copy with two events in the other order',
    'the buyer has the dispatch proved by the service’s signature, and checks the proof',
    'the buyer keeps a signed checkpoint of the ledger, and its events have the same root',
    'a copy without its last event',
  ];
}

const wholeStory = storyOf(
  ['the buyer subscribes a webhook to SHIPMENT_DISPATCHED'],
  'the webhook of the shipment came, and its HMAC is right',
);
/** Of a node in production mode. */
export const storyWithoutWebhook = storyOf([], 'the webhook step is skipped');

/** A run that went well: every step of the story, each with its mark, and the last line counts them. */
export function expectPassed(text: string, story: readonly string[] = wholeStory): void {
  const lines = text.trimEnd().split('\n');
  const steps = lines.filter((line) => !line.startsWith('…'));
  const last = steps.pop();
  expect(steps.map((line, at) => line.slice(0, `✓ ${story[at]}`.length))).toEqual(story.map((title) => `✓ ${title}`));
  expect(last).toBe(`${story.length} passed, 0 failed`);
}
