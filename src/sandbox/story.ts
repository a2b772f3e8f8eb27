import { createClient } from '../client/client.ts';
import type { Party, SandboxTarget, StoryOrder } from './party.ts';
import type { Step } from './steps.ts';
import { onboarding, registering } from './story-onboarding.ts';
import { closing, proving, verifying } from './story-proof.ts';
import { sharing } from './story-sharing.ts';
import { opening, recording } from './story-trade.ts';
import type { WebhookSteps } from './webhook-steps.ts';

const names = ['supplier', 'buyer', 'auditor', 'carrier', 'bank'] as const;

/** The story of one order and its five parties. Each step does something and checks the result, refusals included. */
export async function* story(target: SandboxTarget, hooks: WebhookSteps, now: () => number): AsyncIterable<Step> {
  await using visitor = createClient({ ...target, connections: 2 });
  const parties: Party[] = [];
  const party = (name: (typeof names)[number]): Party => {
    const found = parties.find((one) => one.name === name);
    if (found === undefined) throw new Error(`the ${name} is not registered`);
    return found;
  };
  try {
    yield* registering(target, visitor, names, parties);
    const order: StoryOrder = {
      visitor,
      supplier: party('supplier'),
      buyer: party('buyer'),
      auditor: party('auditor'),
      carrier: party('carrier'),
      bank: party('bank'),
      ledgerId: '',
      shipment: '',
      invoice: '',
      startedHash: '',
    };
    yield* onboarding(order);
    yield* opening(order, target);
    yield* hooks.subscribe(order.buyer, () => order.ledgerId);
    yield* recording(order, target);
    yield* sharing(order, now);
    yield* hooks.received();
    yield* closing(order);
    yield* verifying(order);
    yield* proving(order);
  } finally {
    await hooks.close();
    await Promise.all(parties.map(({ client }) => client.close()));
  }
}
