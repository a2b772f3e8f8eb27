import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { createClient, type LedgerTrustClient, publicKeyBase64, signerFromPrivateKey } from '../src/client/index.ts';

/** A signing key with the credential of its actor. Plain data: it goes to other processes as JSON. */
export interface BenchKey {
  readonly actorId: string;
  readonly apiKey: string;
  readonly kid: string;
  /** PKCS#8 PEM. */
  readonly privateKey: string;
}

export interface BenchMaster {
  readonly masterId: string;
  readonly businessRef: string;
  readonly scope: string;
}

export interface BenchLedger {
  readonly ledgerId: string;
  readonly buyerActorId: string;
  readonly supplierActorId: string;
  readonly masters: readonly BenchMaster[];
}

/** Who appends where: the events of key `k` go to the ledgers that its actor is a party of. */
export interface Setting {
  readonly keys: readonly BenchKey[];
  readonly ledgers: readonly BenchLedger[];
}

export const keyCount = 16;
const mastersOfHotLedger = 4;

/**
 * Makes actors, keys, ledgers and masters through the public API: one ledger of two actors with eight keys each, or
 * many ledgers of eight pairs of actors with a key each.
 */
export async function makeSetting(baseUrl: string, ledgerCount: number): Promise<Setting> {
  const actorCount = ledgerCount === 1 ? 2 : keyCount;
  const byActor: BenchKey[][] = [];
  for (let at = 0; at < actorCount; at++) byActor.push(await makeActor(baseUrl, keyCount / actorCount));
  const ledgers: BenchLedger[] = [];
  for (let at = 0; at < ledgerCount; at++) {
    const pair = 2 * (at % (actorCount / 2));
    const [buyer] = byActor[pair] ?? [];
    const [supplier] = byActor[pair + 1] ?? [];
    if (buyer === undefined || supplier === undefined) throw new Error('a ledger needs two actors');
    ledgers.push(await makeLedger(baseUrl, buyer, supplier, ledgerCount === 1 ? mastersOfHotLedger : 1));
  }
  return { keys: byActor.flat(), ledgers };
}

/** The ledgers that a key's actor may append to. */
export function ledgersOf(setting: Setting, key: BenchKey): readonly BenchLedger[] {
  return setting.ledgers.filter(
    ({ buyerActorId, supplierActorId }) => buyerActorId === key.actorId || supplierActorId === key.actorId,
  );
}

async function makeActor(baseUrl: string, keys: number): Promise<BenchKey[]> {
  const pems = Array.from({ length: keys }, () => generateKeyPairSync('ed25519').privateKey);
  const texts = pems.map((key) => ({
    privateKey: key.export({ format: 'pem', type: 'pkcs8' }).toString(),
    publicKey: publicKeyBase64(key),
  }));
  const [first, ...others] = texts;
  if (first === undefined) throw new Error('an actor needs a key');
  await using nobody = createClient({ baseUrl });
  const { sandbox } = await nobody.registerDeveloper({
    name: 'Bench',
    email: 'bench@example.com',
    region: 'eu',
    publicKey: first.publicKey,
  });
  const { actorId, apiKey, signingKey } = sandbox;
  if (signingKey === null) throw new Error('the key was not enrolled');
  const enrolled: BenchKey[] = [{ actorId, apiKey, kid: signingKey.kid, privateKey: first.privateKey }];
  await using client = createClient({ baseUrl, apiKey });
  for (const { publicKey, privateKey } of others) {
    const { kid } = await client.enrollActorKey({ actorId, publicKey, algorithm: 'Ed25519' });
    enrolled.push({ actorId, apiKey, kid, privateKey });
  }
  return enrolled;
}

async function makeLedger(baseUrl: string, buyer: BenchKey, supplier: BenchKey, masters: number): Promise<BenchLedger> {
  await using client = clientOf(baseUrl, buyer);
  const { id: ledgerId } = await client.createLedger({ supplierSvcId: `svc:actor:${supplier.actorId}` });
  const made: BenchMaster[] = [];
  for (let at = 0; at < masters; at++) {
    const fields = { businessRef: `PO-2026-${String(at).padStart(4, '0')}`, scope: 'ORDER' };
    const { uuid } = await client.createMaster({ ledgerId, ...fields });
    made.push({ masterId: uuid, ...fields });
  }
  return { ledgerId, buyerActorId: buyer.actorId, supplierActorId: supplier.actorId, masters: made };
}

/** A client that calls and signs as the key's actor. */
export function clientOf(baseUrl: string, key: BenchKey): LedgerTrustClient {
  return createClient({
    baseUrl,
    apiKey: key.apiKey,
    signer: signerFromPrivateKey(createPrivateKey(key.privateKey), key.kid),
  });
}
