import { setTimeout } from 'node:timers/promises';
import type { GetHealthRequest, GetTermsRequest } from '../../gen/svc/v1/health_pb.ts';
import type { BehindLogs } from '../log-identity/behind-logs.ts';
import type { Call } from './call.ts';

const terms = {
  version: '1.0',
  text: [
    'Terms of service of the Ledger Trust Service, version 1.0.',
    '1. The service records events that the parties of a ledger sign. It certifies that a record is whole, who made it, and in which order; it does not certify that what a record says is true.',
    '2. Records are never changed and never removed. A correction is a later event that names the one it corrects.',
    '3. Each party keeps its signing keys and API keys to itself, and revokes a key that may be known to others.',
    '4. What a party records is read by the other party of the ledger and by those to whom either of them delegates access.',
    '5. Whoever onboards an organization declares to be entitled to act for it.',
  ].join('\n'),
} as const;

/** One store in the answer of /health. `check` resolves if the store answers. */
export interface StoreCheck {
  readonly name: string;
  check(): Promise<void>;
}

/** A store that takes longer counts as unavailable, ms. */
const checkTimeoutMs = 2_000;

/** What is behind is an entry of its own, and is not listed otherwise. */
const logBehind = { name: 'log', status: 'behind' } as const;

export function healthService(stores: readonly StoreCheck[], behind: Pick<BehindLogs, 'isEmpty'>) {
  const check = async ({ name, check }: StoreCheck) => {
    const late = setTimeout(checkTimeoutMs, 'unavailable', { ref: false });
    const answered = check().then(
      () => 'ok',
      () => 'unavailable',
    );
    return { name, status: await Promise.race([answered, late]) };
  };

  return {
    getHealth: async (_request: GetHealthRequest, _call: Call) => {
      const checked = await Promise.all(stores.map(check));
      const db = behind.isEmpty ? checked : [...checked, logBehind];
      return { status: db.every(({ status }) => status === 'ok') ? 'ok' : 'degraded', db };
    },
    getTerms: async (_request: GetTermsRequest, _call: Call) => terms,
  };
}
