import { generateKeyPairSync } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { createClient, type LedgerTrustClient } from '../client/client.ts';
import { publicKeyBase64, type Signer, signerFromPrivateKey } from '../client/signing/signing.ts';

/** How the run reaches the service: through its public address, as any client does. */
export interface SandboxTarget {
  readonly baseUrl: string;
  readonly dispatcher?: Dispatcher;
}

/** A party of the story: a new actor of the sandbox world with a signing key of its own. */
export interface Party {
  readonly name: string;
  readonly actorId: string;
  readonly svcId: string;
  readonly apiKey: string;
  readonly signer: Signer;
  readonly client: LedgerTrustClient;
}

/** Registers a party, with its public key enrolled as key-1. The private key never leaves this process. */
export async function registerParty(target: SandboxTarget, visitor: LedgerTrustClient, name: string): Promise<Party> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const publicKey = publicKeyBase64(privateKey);
  const { sandbox } = await visitor.registerDeveloper({
    name: `Sandbox ${name}`,
    email: `${name}@sandbox.example`,
    region: 'eu',
    publicKey,
  });
  if (sandbox?.signingKey == null) throw new Error('the registration answered without the enrolled key');
  const signer = signerFromPrivateKey(privateKey, sandbox.signingKey.kid);
  const { actorId, svcId, apiKey } = sandbox;
  const client = createClient({ ...target, apiKey, signer, connections: 4 });
  return { name, actorId, svcId, apiKey, signer, client };
}

/** The order that the story is about: its parties, and what the steps so far have created. */
export interface StoryOrder {
  /** A client without a credential. */
  readonly visitor: LedgerTrustClient;
  readonly supplier: Party;
  readonly buyer: Party;
  readonly auditor: Party;
  readonly carrier: Party;
  readonly bank: Party;
  ledgerId: string;
  /** Master ids. */
  shipment: string;
  invoice: string;
  /** Hash of the PRODUCTION_STARTED event. */
  startedHash: string;
}
