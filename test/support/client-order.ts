import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  authorityKeysOf,
  createClient,
  keysFromResolver,
  type LedgerTrustClient,
  publicKeyBase64,
  signerFromPrivateKey,
  verifyEvents,
} from '../../src/client/index.ts';

/** Where a node, or several behind one address, are called. */
export interface Transports {
  /** `http://host:port` */
  readonly base: string;
  /** `host:port` */
  readonly grpcAddress: string;
}

/** A supplier with a key, its order and a master, called through the typed client. */
export interface ClientOrder extends AsyncDisposable {
  readonly ledgerId: string;
  readonly masterId: string;
  /** The supplier there. */
  at(transports: Transports, transport: 'rest' | 'grpc'): LedgerTrustClient;
  /** Reads the ledger there and checks everything that can be: answers how many events and signatures were. */
  verified(transports: Transports): Promise<{ readonly events: number; readonly signatures: number }>;
}

export async function newClientOrder(transports: Transports): Promise<ClientOrder> {
  const clients: LedgerTrustClient[] = [];
  const connect = (
    at: Transports,
    transport: 'rest' | 'grpc',
    by?: { apiKey: string; key: KeyObject; kid: string },
  ) => {
    const client = createClient({
      baseUrl: at.base,
      grpcUrl: `http://${at.grpcAddress}`,
      transport,
      ...(by === undefined ? {} : { apiKey: by.apiKey, signer: signerFromPrivateKey(by.key, by.kid) }),
    });
    clients.push(client);
    return client;
  };
  const register = async (name: string) => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const publicKey = publicKeyBase64(privateKey);
    const anyone = connect(transports, 'rest');
    const { sandbox } = await anyone.registerDeveloper({ name, email: `${name}@example.com`, region: 'eu', publicKey });
    if (sandbox.signingKey === null) throw new Error('no key was enrolled');
    return { ...sandbox, by: { apiKey: sandbox.apiKey, key: privateKey, kid: sandbox.signingKey.kid } };
  };
  const [supplier, buyer] = await Promise.all([register('supplier'), register('buyer')]);
  const at = (there: Transports, transport: 'rest' | 'grpc') => connect(there, transport, supplier.by);
  const client = at(transports, 'rest');
  const ledger = await client.createLedger({ buyerActorId: buyer.actorId });
  const master = await client.createMaster({ ledgerId: ledger.id, businessRef: 'PO-1', scope: 'ORDER' });
  return {
    ledgerId: ledger.id,
    masterId: master.uuid,
    at,
    verified: async (there) => {
      const reader = at(there, 'rest');
      const authorityKeys = authorityKeysOf(await reader.getAuthority());
      const keys = keysFromResolver(reader);
      const { issues, checked } = await verifyEvents(reader.ledgerEvents(ledger.id), {
        keys,
        authorityKeys,
        trustedKeys: 'all',
        kind: 'ledger',
      });
      if (issues.length > 0) throw new Error(`The ledger is not whole: ${JSON.stringify(issues)}`);
      return { events: checked.events, signatures: checked.actorSignatures };
    },
    [Symbol.asyncDispose]: async () => void (await Promise.all(clients.map((each) => each.close()))),
  };
}
