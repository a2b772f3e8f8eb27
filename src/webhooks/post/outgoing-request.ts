import type { Dispatcher } from 'undici';

/** A body up to this size is read, so that its connection can be used again. A longer one closes the connection. */
export const answerMaxBytes = 64 * 1024;
/** Answers with a status below 200 that may precede the answer. */
export const informationalMax = 16;

/**
 * Resolves with the status of the answer, after its body was read and discarded. Once there is a status, a body that is
 * too long, breaks off or never ends costs only its connection. Rejects if no status came: with the signal's reason if
 * it was aborted.
 *
 * Does not use undici's `request`: the stream that it creates for each body costs as much as the rest of the exchange.
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
    let informational = 0;
    const end = (error: Error) => {
      signal.removeEventListener('abort', late);
      if (status === null) reject(error);
      else resolve(status);
    };
    /** A request that waits for its connection has no controller yet. It is then aborted in onRequestStart. */
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
      onResponseStart: (given, code) => {
        if (code >= 200) {
          status = code;
          return;
        }
        informational += 1;
        if (informational > informationalMax) given.abort(new Error('many informational answers'));
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
