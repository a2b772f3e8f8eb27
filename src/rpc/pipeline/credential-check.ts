import { LedgerError } from '../../domain/errors.ts';
import type { MethodRule } from '../../gen/svc/v1/options_pb.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Credentials } from '../../service/developers/credentials.ts';
import type { IncomingCall } from '../call/incoming-call.ts';
import { identify } from './caller.ts';

/** Checks a credential again and again, one check at a time. One that hangs is given up for the next one. */
export class CredentialCheck {
  readonly #credentials: Credentials;
  /** When the check under way began (monotonic, ms). */
  #beganMs = Number.NEGATIVE_INFINITY;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  /**
   * Returns the error that ends the credential's streams; null if the credential is valid, or if that is not known: a
   * stream goes on while the store does not answer, as it can do nothing without the store.
   */
  async run(rule: MethodRule, incoming: Pick<IncomingCall, 'header'>): Promise<LedgerError | null> {
    const nowMs = performance.now();
    if (nowMs - this.#beganMs < limits.streamCredentialCheckMaxMs) return null;
    this.#beganMs = nowMs;
    try {
      await identify(this.#credentials, rule, incoming);
      return null;
    } catch (thrown) {
      return thrown instanceof LedgerError && thrown.code !== 'unavailable' ? thrown : null;
    } finally {
      if (this.#beganMs === nowMs) this.#beganMs = Number.NEGATIVE_INFINITY;
    }
  }
}
