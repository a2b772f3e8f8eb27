import { createClient } from '../client/client.ts';
import type { Event } from '../client/event.ts';
import { authorityKeysOf, keysFromResolver } from '../client/key-source.ts';
import { verifyEvents } from '../client/verifying.ts';
import { leave, type Party, registerParty, type SandboxTarget } from './party.ts';
import { check, refused, type Step } from './steps.ts';
import { tampered } from './tampering.ts';
import type { WebhookSteps } from './webhook-steps.ts';

const names = ['supplier', 'buyer', 'auditor', 'carrier', 'bank'] as const;

/**
 * The story of one order and its five parties, through the service's public API alone. Each step does something and looks at
 * what came of it, refusals included.
 */
export async function* story(target: SandboxTarget, hooks: WebhookSteps, now: () => number): AsyncIterable<Step> {
  await using visitor = createClient({ ...target, connections: 2 });
  const parties: Party[] = [];
  const party = (name: (typeof names)[number]): Party => {
    const found = parties.find((one) => one.name === name);
    if (found === undefined) throw new Error(`the ${name} is not registered`);
    return found;
  };
  let ledgerId = '';
  let shipment = '';
  let invoice = '';
  let startedHash = '';
  let history: Event[] = [];

  try {
    for (const name of names) {
      yield {
        title: `the ${name} registers and enrols a signing key`,
        run: async () => {
          parties.push(await registerParty(target, visitor, name));
          return party(name).svcId;
        },
      };
    }
    const supplier = party('supplier');
    const buyer = party('buyer');
    const auditor = party('auditor');
    const carrier = party('carrier');
    const bank = party('bank');

    yield {
      title: 'anyone finds the supplier’s public key through the resolver',
      run: async () => {
        const document = await visitor.resolveActor({ svcUri: supplier.svcId });
        check(document.preferredSigning === supplier.signer.keyId, 'the preferred key is another one');
        return document.preferredSigning;
      },
    };
    for (const owner of [supplier, buyer]) {
      yield {
        title: `the ${owner.name} onboards its organization and gets a root ledger`,
        run: async () => {
          const { version } = await visitor.getTerms();
          const made = await owner.client.onboardOrganization({
            legalName: `Sandbox ${owner.name} GmbH`,
            country: 'DE',
            vatTaxNumber: 'DE123456789',
            primaryEmail: `${owner.name}@sandbox.example`,
            termsVersion: version,
            declarationHash: 'sandbox',
          });
          check(made.status === 'APPROVED', `the status is ${made.status}`);
          return made.frlLedgerId;
        },
      };
    }
    yield {
      title: 'the buyer opens a ledger with the supplier',
      run: async () => {
        const ledger = await buyer.client.createLedger({ supplierSvcId: supplier.svcId });
        ledgerId = ledger.id;
        const { ledgers } = await supplier.client.listLedgers({ ledgerType: 'ORDER' });
        check(
          ledgers.some(({ id }) => id === ledgerId),
          'the supplier does not see it',
        );
        return ledgerId;
      },
    };
    yield {
      title: 'a stranger is told that there is no such ledger',
      run: async () => {
        await refused(carrier.client.getLedger({ ledgerId }), 'not_found');
        return undefined;
      },
    };
    yield {
      title: 'an unsigned call of an actor with keys is refused',
      run: async () => {
        const master = { ledgerId, businessRef: 'PO-2026-0042', scope: 'ORDER' };
        await refused(supplier.unsigned.createMaster(master), 'signature_required');
        return undefined;
      },
    };
    yield {
      title: 'the supplier creates a master for the shipment, signed',
      run: async () => {
        const made = await supplier.client.createMaster({ ledgerId, businessRef: 'PO-2026-0042', scope: 'ORDER' });
        shipment = made.uuid;
        return shipment;
      },
    };
    yield* hooks.subscribe(buyer, () => ledgerId);
    yield {
      title: 'the supplier records PRODUCTION_STARTED',
      run: async () => {
        const recorded = await supplier.client.appendEvent({
          uuid: shipment,
          eventType: 'PRODUCTION_STARTED',
          payload: { line: 'A', planned_quantity: 500 },
        });
        startedHash = recorded.hash;
        return `seq ${recorded.seq}`;
      },
    };
    yield {
      title: 'the same call again, with its idempotency key, writes nothing new',
      run: async () => {
        const event = { uuid: shipment, eventType: 'ERP_SYNC', payload: { batch: 'B-7' } };
        const idempotencyKey = `sandbox-${shipment}`;
        let replayed = false;
        const first = await supplier.client.appendEvent(event, { idempotencyKey });
        const again = await supplier.client.appendEvent(event, {
          idempotencyKey,
          onAnswer: (answer) => {
            replayed = answer.replayed;
          },
        });
        check(again.eventId === first.eventId && replayed, 'a second event was written');
        return undefined;
      },
    };
    yield {
      title: 'a signature by somebody else’s key is refused',
      run: async () => {
        const forger = createClient({
          ...target,
          apiKey: supplier.apiKey,
          signer: { ...buyer.signer, keyId: supplier.signer.keyId ?? '' },
        });
        try {
          const forged = forger.appendEvent({ uuid: shipment, eventType: 'FORGED', payload: {} });
          await refused(forged, 'invalid_signature');
        } finally {
          await forger.close();
        }
        return undefined;
      },
    };
    yield {
      title: 'the supplier lets the carrier write to this master',
      run: async () => {
        const granted = await supplier.client.grantMasterDelegation({
          masterId: shipment,
          delegateActorId: carrier.actorId,
          role: 'AGENT',
          permissions: { access: 'write' },
        });
        return `link ${granted.linkId}`;
      },
    };
    yield {
      title: 'the carrier records SHIPMENT_DISPATCHED, caused by the production',
      run: async () => {
        const recorded = await carrier.client.appendEvent({
          uuid: shipment,
          eventType: 'SHIPMENT_DISPATCHED',
          payload: { carrier: 'BlueDart', pallets: 4, caused_by_hash: startedHash },
        });
        const { events } = await buyer.client.listMasterEvents({ uuid: shipment, eventId: recorded.eventId });
        check(events[0]?.causedByHash === startedHash, 'the cause is not shown');
        return `seq ${recorded.seq}`;
      },
    };
    yield {
      title: 'the buyer lets the auditor read the ledger',
      run: async () => {
        await buyer.client.grantLedgerDelegation({ ledgerId, delegateActorId: auditor.actorId, role: 'AUDITOR' });
        return undefined;
      },
    };
    yield {
      title: 'the auditor reads everything and finds it whole',
      run: async () => {
        const read = await auditor.client.listLedgerEvents({ ledgerId, verify: 'signatures' });
        check(read.integrity?.verified === true, 'the integrity block says otherwise');
        return `${read.count} events`;
      },
    };
    yield {
      title: 'the auditor may not write',
      run: async () => {
        const event = { uuid: shipment, eventType: 'AUDIT_NOTE', payload: {} };
        await refused(auditor.client.appendEvent(event), 'permission_denied');
        return undefined;
      },
    };
    yield {
      title: 'the supplier creates a master for the invoice and records INVOICE_RAISED',
      run: async () => {
        const made = await supplier.client.createMaster({ ledgerId, businessRef: 'INV-2026-0042', scope: 'PROCESS' });
        invoice = made.uuid;
        const raised = { uuid: invoice, eventType: 'INVOICE_RAISED', payload: { amount: 12_500.5, currency: 'EUR' } };
        return `seq ${(await supplier.client.appendEvent(raised)).seq}`;
      },
    };
    yield {
      title: 'the supplier lets the bank read the invoice, for a day',
      run: async () => {
        const expiresAt = new Date(now() + 86_400_000).toISOString();
        await supplier.client.grantMasterAccess({ uuid: invoice, actorId: bank.actorId, access: 'read', expiresAt });
        return `until ${expiresAt}`;
      },
    };
    yield {
      title: 'the bank sees the invoice, and of the shipment nothing',
      run: async () => {
        const read = await bank.client.listMasterEvents({ uuid: invoice });
        check(
          read.events.some(({ eventType }) => eventType === 'INVOICE_RAISED'),
          'the invoice is not shown',
        );
        await refused(bank.client.getMaster({ uuid: shipment }), 'not_found');
        const segment = await bank.client.listLedgerEvents({ ledgerId });
        check(
          segment.events.every(({ masterId }) => masterId === null || masterId === invoice),
          'it sees more',
        );
        return `${segment.count} events of the ledger`;
      },
    };
    yield {
      title: 'the supplier takes the carrier’s access back',
      run: async () => {
        await supplier.client.revokeMasterDelegation({ masterId: shipment, delegateActorId: carrier.actorId });
        return undefined;
      },
    };
    yield {
      title: 'the carrier can neither write nor read any more',
      run: async () => {
        const late = { uuid: shipment, eventType: 'SHIPMENT_DELIVERED', payload: {} };
        await refused(carrier.client.appendEvent(late), 'not_found', 'permission_denied');
        await refused(carrier.client.listMasterEvents({ uuid: shipment }), 'not_found');
        return undefined;
      },
    };
    yield {
      title: 'the proof of delegation shows the grant and its end',
      run: async () => {
        const proof = await buyer.client.getDelegationProof({ masterId: shipment });
        const types = proof.events.map(({ eventType }) => eventType);
        check(types.join() === 'MASTER_DELEGATION_GRANTED,MASTER_DELEGATION_REVOKED', `it shows ${types.join(', ')}`);
        check(proof.integrity?.verified === true, 'its integrity block says otherwise');
        return types.join(', ');
      },
    };
    yield* hooks.received();
    yield {
      title: 'the supplier closes the shipment’s master; nothing more is taken',
      run: async () => {
        await supplier.client.closeMaster({ uuid: shipment });
        const late = { uuid: shipment, eventType: 'TOO_LATE', payload: {} };
        await refused(supplier.client.appendEvent(late), 'master_closed');
        return undefined;
      },
    };
    yield {
      title: 'the buyer closes the ledger, sealed by the authority; nothing more is taken',
      run: async () => {
        const closed = await buyer.client.closeLedger({ ledgerId });
        check(closed.status === 'CLOSED', `the status is ${closed.status}`);
        const late = { uuid: invoice, eventType: 'TOO_LATE', payload: {} };
        await refused(supplier.client.appendEvent(late), 'ledger_closed');
        return undefined;
      },
    };
    const keys = keysFromResolver(visitor);
    yield {
      title: 'the buyer downloads the ledger and verifies it without trusting the server',
      run: async () => {
        history = [];
        for await (const event of buyer.client.ledgerEvents(ledgerId)) history.push(event);
        const authorityKeys = authorityKeysOf(await visitor.getAuthority());
        const found = await verifyEvents(history, { keys, authorityKeys, kind: 'ledger' });
        check(found.issues.length === 0, found.issues[0]?.detail ?? '');
        const { chainHashes, actorSignatures } = found.checked;
        check(chainHashes === history.length, `only ${chainHashes} of ${history.length} hashes could be recomputed`);
        return `${chainHashes} hashes recomputed, ${actorSignatures} signatures verified`;
      },
    };
    yield {
      title: 'the bank verifies its one master by itself',
      run: async () => {
        const events: Event[] = [];
        for await (const event of bank.client.masterEvents(invoice)) events.push(event);
        const found = await verifyEvents(events, { keys, kind: 'master' });
        check(found.issues.length === 0, found.issues[0]?.detail ?? '');
        return `${found.checked.contentHashes} events in an unbroken chain`;
      },
    };
    for (const { title, copy } of tampered(() => history)) {
      yield {
        title,
        run: async () => {
          const found = await verifyEvents(copy(), { keys, kind: 'ledger' });
          const [issue] = found.issues;
          check(issue !== undefined, 'the tampered copy passed for good');
          return `found out (${issue.type})`;
        },
      };
    }
  } finally {
    await hooks.close();
    await leave(parties);
  }
}
