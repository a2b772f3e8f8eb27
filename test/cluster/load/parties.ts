import { generateKeyPairSync } from 'node:crypto';
import {
  createClient,
  type LedgerTrustClient,
  publicKeyBase64,
  type Signer,
  signerFromPrivateKey,
} from '../../../src/client/index.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';

/** Bound of one attempt: longer than a running node takes, shorter than a node's pause. */
const attemptMaxMs = 4_000;

/** One address of several nodes. */
export interface OneAddress {
  readonly baseUrl: string;
  readonly grpcUrl: string;
}

/** A sandbox actor with a signing key, and a client to each node for it. */
export interface LoadParty {
  readonly actorId: string;
  readonly svcId: string;
  readonly apiKey: string;
  /** A client that sends each call once, so that every attempt can be noted. */
  at(node: NodeUnderTest): LedgerTrustClient;
  /** A client with the default retries. The caller closes it. */
  through(address: OneAddress, transport: 'rest' | 'grpc'): LedgerTrustClient;
  close(): Promise<void>;
}

export async function registerParty(node: NodeUnderTest, name: string): Promise<LoadParty> {
  const { privateKey } = generateKeyPairSync('ed25519');
  await using stranger = createClient({ baseUrl: node.baseUrl });
  const { sandbox } = await stranger.registerDeveloper({
    name,
    email: 'load@example.com',
    region: 'eu',
    publicKey: publicKeyBase64(privateKey),
  });
  if (sandbox?.signingKey == null) throw new Error('the key was not enrolled');
  const signer: Signer = signerFromPrivateKey(privateKey, sandbox.signingKey.kid);
  const credential = { apiKey: sandbox.apiKey, signer };
  const clients = new Map<string, LedgerTrustClient>();
  return {
    actorId: sandbox.actorId,
    svcId: sandbox.svcId,
    apiKey: sandbox.apiKey,
    at(node) {
      let client = clients.get(node.id);
      if (client === undefined) {
        const { baseUrl, grpcUrl } = node;
        const once = { attemptsMax: 1, attemptTimeoutMs: attemptMaxMs, timeoutMs: attemptMaxMs };
        client = createClient({ baseUrl, grpcUrl, ...credential, ...once });
        clients.set(node.id, client);
      }
      return client;
    },
    through: (address, transport) => createClient({ ...address, transport, ...credential }),
    close: async () => void (await Promise.all([...clients.values()].map((client) => client.close()))),
  };
}
