import type { GetHealthRequest, GetTermsRequest } from '../../gen/svc/v1/health_pb.ts';
import type { Call } from './call.ts';
import { terms } from './terms-of-service.ts';

/** One store in the answer of /health. `check` resolves if the store answers. */
export interface StoreCheck {
  readonly name: string;
  check(): Promise<void>;
}

/** A store that takes longer counts as unavailable, ms. */
const checkTimeoutMs = 2_000;

/** The methods for health and terms. */
export function healthService(stores: readonly StoreCheck[]) {
  const check = async ({ name, check }: StoreCheck) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${name} did not answer`)), checkTimeoutMs);
    });
    try {
      await Promise.race([check(), late]);
      return { name, status: 'ok' };
    } catch {
      return { name, status: 'unavailable' };
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    getHealth: async (_request: GetHealthRequest, _call: Call) => {
      const db = await Promise.all(stores.map(check));
      return { status: db.every(({ status }) => status === 'ok') ? 'ok' : 'degraded', db };
    },
    getTerms: async (_request: GetTermsRequest, _call: Call) => terms,
  };
}
