// Registers two parties, signs and appends an event, reads and verifies the ledger, and receives a webhook.
// Against a development node: BASE=http://localhost:8080 node walk.ts
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import {
  authorityKeysOf,
  createClient,
  keysFromResolver,
  publicKeyBase64,
  signerFromPrivateKey,
  verifyEvents,
  verifyWebhook,
  type WebhookDelivery,
} from 'ledger-trust-client';

const baseUrl = process.env.BASE ?? 'http://localhost:8080';

/** The webhook's secret is known once the subscription is made, which needs the port of the receiver. */
let secret = '';
const delivered = Promise.withResolvers<WebhookDelivery>();
const server = createServer(async (request, response) => {
  try {
    delivered.resolve(verifyWebhook(secret, request.headers, await buffer(request)));
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const address = server.address();
if (typeof address !== 'object' || address === null) throw new Error('The receiver has no port.');

// Two parties. The private key never leaves this program.
await using anyone = createClient({ baseUrl });
const { privateKey } = generateKeyPairSync('ed25519');
const person = { email: 'dev@example.com', region: 'eu' };
const publicKey = publicKeyBase64(privateKey);
const { sandbox: supplier } = await anyone.registerDeveloper({ ...person, name: 'Supplier', publicKey });
const { sandbox: buyer } = await anyone.registerDeveloper({ ...person, name: 'Buyer' });
await using seller = createClient({ baseUrl, apiKey: supplier.apiKey, signer: signerFromPrivateKey(privateKey) });
await using reader = createClient({ baseUrl, apiKey: buyer.apiKey });

const url = `http://127.0.0.1:${address.port}/`;
({ secret } = await reader.createWebhook({ url, eventTypes: ['SHIPMENT_DISPATCHED'] }));

// The client signs what must be signed, and sends an idempotency key, so that a retry writes nothing twice.
const ledger = await seller.createLedger({ buyerSvcId: buyer.svcId });
const master = await seller.createMaster({ ledgerId: ledger.id, businessRef: 'PO-1 <Zoë & Co>', scope: 'ORDER' });
const appended = await seller.appendEvent({
  uuid: master.uuid,
  eventType: 'SHIPMENT_DISPATCHED',
  payload: { carrier: 'Straße & Söhne', pallets: 4 },
});

// The other side reads the ledger, and recomputes every hash and signature. The checkpoint is the service's signature
// over the order of all events so far: without it, events behind the last seal could have been moved or left out.
const events = [];
for await (const event of reader.ledgerEvents(ledger.id)) events.push(event);
const authorityKeys = authorityKeysOf(await reader.getAuthority());
const checkpoint = await reader.checkpoint(ledger.id);
const keys = keysFromResolver(reader);
const options = { keys, authorityKeys, trustedKeys: 'all', kind: 'ledger', checkpoint } as const;
const { verdict, checked, issues, incomplete } = await verifyEvents(events, options);
if (verdict !== 'valid') throw new Error(`${verdict}: ${JSON.stringify([...issues, ...incomplete])}`);
console.log(`verified: ${checked.events} events, ${checked.actorSignatures} signatures, chain whole`);

const { event } = await delivered.promise;
if (event?.id !== appended.eventId || event.hash !== appended.hash) throw new Error('The webhook is of another event.');
console.log(`received: ${event.eventType}, signed by the service`);
server.closeAllConnections();
server.close();
