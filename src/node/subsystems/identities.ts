import { Identities } from '../../service/actors/identities.ts';
import { KeyEndings } from '../../service/actors/key-endings.ts';
import { storedCredentials } from '../../service/developers/entity-credentials.ts';
import { VerifyingThreads } from '../../service/signatures/verifying-threads.ts';
import type { NodeContext } from './context.ts';

/** Actors with their keys, API keys, and the threads that verify signatures. */
export function startIdentities({ records, changes, config, production, now, clock }: NodeContext) {
  const verifying = new VerifyingThreads({ waitingMax: config.queues.signaturesMax });
  const identities = new Identities(records, now, verifying.verify, changes);
  return {
    verifying,
    identities,
    credentials: storedCredentials(records, identities, { production, now }),
    endings: new KeyEndings(identities, clock),
    [Symbol.asyncDispose]: () => verifying[Symbol.asyncDispose](),
  };
}
