import type { Event } from '../client/event.ts';
import type { VerifiedCheckpoint } from '../client/proofs/proof-reading.ts';
import { authorityKeysOf, keysFromResolver } from '../client/verify/key-source.ts';
import type { Verification } from '../client/verify/verification.ts';
import { authorityTypes } from '../client/verify/verify-payload.ts';
import { verifyEvents } from '../client/verify/verifying.ts';
import type { StoryOrder } from './party.ts';
import { check, refused, type Step, step } from './steps.ts';

/** Closes the shipment's master and the ledger, and checks that they refuse further events. */
export function* closing(order: StoryOrder): Iterable<Step> {
  const { supplier, buyer } = order;
  yield step('the supplier closes the shipment’s master; nothing more is taken', async () => {
    await supplier.client.closeMaster({ uuid: order.shipment });
    const late = { uuid: order.shipment, eventType: 'TOO_LATE', payload: {} };
    await refused(supplier.client.appendEvent(late), 'master_closed');
  });
  yield step('the buyer closes the ledger, sealed by the authority; nothing more is taken', async () => {
    const closed = await buyer.client.closeLedger({ ledgerId: order.ledgerId });
    check(closed.status === 'CLOSED', `the status is ${closed.status}`);
    const late = { uuid: order.invoice, eventType: 'TOO_LATE', payload: {} };
    await refused(supplier.client.appendEvent(late), 'ledger_closed');
  });
}

/** The buyer and the bank verify what they may read. The verification must also find every tampered copy. */
export function* verifying(order: StoryOrder): Iterable<Step> {
  const { visitor, buyer, bank } = order;
  const keys = keysFromResolver(visitor);
  let history: Event[] = [];
  yield step('the buyer downloads the ledger and verifies it without trusting the server', async () => {
    history = await Array.fromAsync(buyer.client.ledgerEvents(order.ledgerId));
    const authorityKeys = authorityKeysOf(await visitor.getAuthority());
    const checkpoint = await buyer.client.checkpoint(order.ledgerId);
    const found = await verifyEvents(history, { keys, authorityKeys, trustedKeys: 'all', kind: 'ledger', checkpoint });
    checkSigned(history, found);
    check(history.at(-1)?.eventType === 'LEDGER_CLOSED', 'the end of the ledger is not shown');
    const { chainHashes, actorSignatures } = found.checked;
    check(chainHashes === history.length, `only ${chainHashes} of ${history.length} hashes could be recomputed`);
    return `${chainHashes} hashes recomputed, ${actorSignatures} signatures verified`;
  });
  yield step('the bank verifies its one master by itself', async () => {
    const events = await Array.fromAsync(bank.client.masterEvents(order.invoice));
    const checkpoint = await bank.client.masterCheckpoint(order.invoice);
    const found = await verifyEvents(events, { keys, kind: 'master', checkpoint });
    checkSigned(events, found);
    check(
      events.some(({ eventType }) => eventType === 'INVOICE_RAISED'),
      'the invoice is not shown',
    );
    const { contentHashes } = found.checked;
    check(contentHashes === events.length, `only ${contentHashes} of ${events.length} hashes could be recomputed`);
    return `${contentHashes} events in an unbroken chain`;
  });
  for (const [title, copyOf] of tampered) {
    yield step(title, async () => {
      const found = await verifyEvents(copyOf(history), { keys, kind: 'ledger' });
      const [issue] = found.issues;
      check(issue !== undefined, 'the tampered copy passed for good');
      return `found out (${issue.type})`;
    });
  }
}

/** The buyer gets a proof from the service, and a checkpoint with which a copy that was cut short is found out. */
export function* proving(order: StoryOrder): Iterable<Step> {
  const { client } = order.buyer;
  let history: Event[] = [];
  yield step('the buyer has the dispatch proved by the service’s signature, and checks the proof', async () => {
    history = await Array.fromAsync(client.ledgerEvents(order.ledgerId));
    const dispatch = history.find(({ eventType }) => eventType === 'SHIPMENT_DISPATCHED');
    check(dispatch !== undefined, 'the dispatch is not shown');
    const { index, checkpoint } = await client.proveEvent(dispatch);
    return `event ${index} of the ${checkpoint.size} that were signed`;
  });
  let checkpoint: VerifiedCheckpoint | undefined;
  yield step('the buyer keeps a signed checkpoint of the ledger, and its events have the same root', async () => {
    checkpoint = await client.checkpoint(order.ledgerId);
    const [issue] = await issuesOf(history, order, checkpoint);
    check(issue === undefined, issue?.detail ?? '');
    return `${checkpoint.size} events`;
  });
  yield step('a copy without its last event', async () => {
    const [issue] = await issuesOf(history.slice(0, -1), order, checkpoint);
    check(issue?.type === 'shorter_than_checkpoint', 'the shortened copy passed for good');
    return `found out (${issue.type})`;
  });
}

async function issuesOf(events: readonly Event[], { visitor }: StoryOrder, checkpoint: VerifiedCheckpoint | undefined) {
  const keys = keysFromResolver(visitor);
  return (await verifyEvents(events, { keys, kind: 'ledger', extent: 'all', checkpoint })).issues;
}

/** All five parties have keys, so all their events are signed, the closing too. */
function checkSigned(events: readonly Event[], { issues, incomplete, checked }: Verification): void {
  check(issues.length === 0, issues[0]?.detail ?? '');
  const unsigned = incomplete.find(({ type }) => type === 'order_unsigned');
  check(unsigned === undefined, unsigned?.detail ?? '');
  const signed = events.filter(
    ({ eventType }) => eventType === 'LEDGER_CLOSED' || !authorityTypes.has(eventType),
  ).length;
  check(
    checked.actorSignatures === signed,
    `only ${checked.actorSignatures} of ${signed} signatures could be verified`,
  );
}

/** Copies of a ledger, each tampered with in another way. The verification must find every one. */
const tampered: readonly (readonly [title: string, copyOf: (history: readonly Event[]) => Event[]])[] = [
  [
    'a copy with a changed amount',
    (history) =>
      history.map((event) =>
        event.eventType === 'INVOICE_RAISED' ? { ...event, payload: { ...event.payload, amount: 99_999 } } : event,
      ),
  ],
  [
    'a copy with an event left out',
    (history) => history.filter(({ eventType }) => eventType !== 'SHIPMENT_DISPATCHED'),
  ],
  [
    'a copy with an event put under another actor’s name',
    (history) =>
      history.map((event) =>
        event.eventType === 'SHIPMENT_DISPATCHED' ? { ...event, actorId: history[1]?.actorId ?? null } : event,
      ),
  ],
  [
    'a copy with two events in the other order',
    (history) => {
      const index = history.findIndex(({ eventType }) => eventType === 'PRODUCTION_STARTED');
      return [...history.slice(0, index), ...history.slice(index, index + 2).reverse(), ...history.slice(index + 2)];
    },
  ],
];
