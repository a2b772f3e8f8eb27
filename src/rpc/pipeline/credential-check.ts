import { LedgerError } from '../../domain/errors.ts';
import type { MethodRule } from '../../gen/svc/v1/options_pb.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Credentials } from '../../service/developers/credentials.ts';
import type { IncomingCall } from '../call/incoming-call.ts';
import { asLedgerError } from './as-ledger-error.ts';
import { identify } from './caller.ts';

/** Checks a credential again and again, one check at a time. One that hangs is given up for the next one. */
export class CredentialCheck {
  readonly #credentials: Credentials;
  /** When a check that found it valid began, or the stream did (monotonic, ms). */
  #validMs = performance.now();
  /** When the check under way began (monotonic, ms). */
  #beganMs = Number.NEGATIVE_INFINITY;

  constructor(credentials: Credentials) {
    this.#credentials = credentials;
  }

  /**
   * Returns the error that ends the credential's streams, or null. While the store does not answer they go on, but not
   * for longer than `streamCredentialUnknownMs`: the credential may have been revoked meanwhile.
   */
  async run(rule: MethodRule, incoming: Pick<IncomingCall, 'header'>): Promise<LedgerError | null> {
    const nowMs = performance.now();
    if (nowMs - this.#validMs > limits.streamCredentialUnknownMs) return notChecked();
    if (nowMs - this.#beganMs < limits.streamCredentialCheckMaxMs) return null;
    this.#beganMs = nowMs;
    try {
      await identify(this.#credentials, rule, incoming, known);
      this.#validMs = Math.max(this.#validMs, nowMs);
      return null;
    } catch (thrown) {
      const error = asLedgerError(thrown);
      return error.code === 'unavailable' ? null : error;
    } finally {
      if (this.#beganMs === nowMs) this.#beganMs = Number.NEGATIVE_INFINITY;
    }
  }
}

/** The caller of a stream was found at its start. */
const known = { admitUnknown: () => {} };

function notChecked(): LedgerError {
  return new LedgerError(
    'unavailable',
    'The credential of this stream could not be checked for too long: begin the stream again.',
  );
}
