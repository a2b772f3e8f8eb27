import type { LedgerTrustClient } from '../client/client.ts';
import { type Party, registerParty, type SandboxTarget, type StoryOrder } from './party.ts';
import { check, type Step, step } from './steps.ts';

/** A step for each party that registers it and adds it to `parties`. */
export function* registering(
  target: SandboxTarget,
  visitor: LedgerTrustClient,
  names: readonly string[],
  parties: Party[],
): Iterable<Step> {
  for (const name of names) {
    yield step(`the ${name} registers and enrols a signing key`, async () => {
      const party = await registerParty(target, visitor, name);
      parties.push(party);
      return party.svcId;
    });
  }
}

/** Looks up the supplier's public key, and onboards two organizations with their root ledgers. */
export function* onboarding({ visitor, supplier, buyer }: StoryOrder): Iterable<Step> {
  yield step('anyone finds the supplier’s public key through the resolver', async () => {
    const document = await visitor.resolveActor({ svcUri: supplier.svcId });
    check(document.preferredSigning === supplier.signer.keyId, 'the preferred key is another one');
    return document.preferredSigning;
  });
  for (const owner of [supplier, buyer]) {
    yield step(`the ${owner.name} onboards its organization and gets a root ledger`, async () => {
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
    });
  }
}
