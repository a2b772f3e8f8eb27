import { createHash, createPrivateKey } from 'node:crypto';
import { type LedgerFacts, noFacts } from '../src/domain/event/facts.ts';
import { injectedFields } from '../src/domain/event/service-events.ts';
import { canonicalJson } from '../src/domain/json/canonical.ts';
import { signDigest } from '../src/domain/keys/key-object.ts';
import { sigDigest } from '../src/domain/keys/signature.ts';
import { benchEventType, payloadOf } from './payload.ts';
import { type BenchLedger, type BenchMaster, keyCount, ledgersOf, type Setting } from './setting.ts';
import type { SignedEvent } from './wire.ts';

/** One event in so many is wrongly signed. */
const wrongEvery = 1_000;

/** The index of an event in its run: the signers' events alternate. */
function eventIndex(signer: number, place: number, signers: number): number {
  return place * signers + signer;
}

/** How many of the events of these records are wrongly signed, of all signers; `from` inclusive, `to` exclusive. */
export function wrongIn(from: number, to: number, signers: number): number {
  return Math.floor((to * signers) / wrongEvery) - Math.floor((from * signers) / wrongEvery);
}

export function isWronglySigned(index: number): boolean {
  return index % wrongEvery === wrongEvery - 1;
}

/** Makes the events of a signer, for the ledgers of its key and their masters one after another. */
export function eventSigner(setting: Setting, signer: number, run: string): (place: number) => SignedEvent {
  const key = setting.keys[signer];
  if (key === undefined) throw new Error(`there is no key ${signer}`);
  const privateKey = createPrivateKey(key.privateKey);
  const targets = targetsOf(ledgersOf(setting, key));
  return (place) => {
    const index = eventIndex(signer, place, keyCount);
    const { ledger, master } = targets[place % targets.length] as Target;
    const payload = payloadOf(index);
    const signed = canonicalJson({ ...payload, ...injectedFields(factsOf(ledger), master) });
    const digest = sigDigest(benchEventType, ledger.ledgerId, signed);
    // A wrong signature is a real one, of something else.
    const signature = signDigest(isWronglySigned(index) ? otherDigest(digest) : digest, privateKey);
    return {
      apiKey: key.apiKey,
      kid: key.kid,
      masterId: master.masterId,
      payload: JSON.stringify(payload),
      signature,
      place,
      idempotencyKey: `${run}-${String(index).padStart(8, '0')}`,
    };
  };
}

interface Target {
  readonly ledger: BenchLedger;
  readonly master: BenchMaster;
}

function targetsOf(ledgers: readonly BenchLedger[]): Target[] {
  return ledgers.flatMap((ledger) => ledger.masters.map((master) => ({ ledger, master })));
}

function factsOf(ledger: BenchLedger): LedgerFacts {
  return {
    ...noFacts,
    ledgerId: ledger.ledgerId,
    type: 'ORDER',
    createdAt: '',
    genesisHash: '',
    buyerActorId: ledger.buyerActorId,
    supplierActorId: ledger.supplierActorId,
  };
}

function otherDigest(digest: Uint8Array): Uint8Array {
  return createHash('sha256').update(digest).digest();
}
