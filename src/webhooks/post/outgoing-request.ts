import type { Dispatcher } from 'undici';

/**
 * An answer's body is read up to this size, so that its connection can be used again. A longer body closes the
 * connection.
 */
export const answerMaxBytes = 64 * 1024;

/**
 * Sends a request. Resolves with the status of the answer, after its body was read and discarded. Once there is a
 * status, a body that is too long, breaks off or never ends costs only its connection. Rejects if no status came: with
 * the signal's reason if the signal was aborted.
 *
 * Does not use undici's `request`, which creates a stream for each body. That costs as much as the rest of the
 * exchange.
 */
export function sendRequest(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null;
    let status: number | null = null;
    let bytes = 0;
    const end = (error: Error) => {
      signal.removeEventListener('abort', late);
      if (status === null) reject(error);
      else resolve(status);
    };
    /** While a request waits for its connection there is no controller yet. It is then aborted in onRequestStart. */
    const late = () => {
      const reason = signal.reason instanceof Error ? signal.reason : new Error('late');
      controller?.abort(reason);
      end(reason);
    };
    signal.addEventListener('abort', late);
    if (signal.aborted) return late();
    dispatcher.dispatch(request, {
      onRequestStart: (given) => {
        controller = given;
        if (signal.aborted) given.abort(new Error('late'));
      },
      onResponseStart: (_controller, given) => {
        // 1xx statuses only precede the answer.
        if (given >= 200) status = given;
      },
      onResponseData: (given, chunk) => {
        bytes += chunk.length;
        if (bytes > answerMaxBytes) given.abort(new Error('long'));
      },
      onResponseEnd: () => end(new Error('no status')),
      onResponseError: (_controller, error) => end(error),
    });
  });
}
