import { LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { Credentials } from '../../service/developers/credentials.ts';
import type { BidiCall } from '../call/incoming-call.ts';
import type { RunningCall } from '../call/running-call.ts';
import { CredentialCheck } from './credential-check.ts';

/**
 * Checks a stream's credential at intervals until it is disposed of. Once the credential is no longer valid, no more
 * requests are taken, the outcomes of the requests that were taken are still sent, and then the stream ends with the
 * error.
 *
 * If they do not arrive within `streamLastOutcomesMs`, the stream ends with `outcome_unknown`, by `answerFor`: a
 * refusal would say that none of them was written. The caller's next stream gets the refusal.
 */
export function watchCredential(
  credentials: Credentials,
  call: RunningCall,
  incoming: BidiCall,
  answerFor: (call: RunningCall, incoming: BidiCall, error: LedgerError) => void,
): Disposable {
  const check = new CredentialCheck(credentials);
  let last: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    if (call.ending !== null) return;
    const error = await check.run(call.endpoint.rule, incoming);
    if (error === null || call.ending !== null) return;
    call.ending = error;
    incoming.requests.stop();
    last = setTimeout(() => {
      call.abort('credential ended');
      if (call.answered) return;
      call.answered = true;
      call.ending = outcomesMissing();
      answerFor(call, incoming, call.ending);
    }, limits.streamLastOutcomesMs).unref();
  };
  const timer = setInterval(() => void look(), limits.streamCredentialCheckMs).unref();
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      clearTimeout(last);
    },
  };
}

function outcomesMissing(): LedgerError {
  const message =
    'The credential of this stream has ended, and events that were taken may or may not have been written: send them again with their idempotency keys and a credential that is good.';
  return new LedgerError('outcome_unknown', message);
}
