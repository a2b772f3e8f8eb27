import type { Dispatcher } from 'undici';

/** An answer's body is read up to here, so that its connection can be used again; beyond it the connection is closed. */
export const answerMaxBytes = 64 * 1024;

/**
 * Sends a request and answers its status once the answer's body was read and thrown away. The status decides: a body that is too long,
 * breaks off or never ends only costs its connection. Rejects where no status came, with the signal's reason if its time was over. Undici's
 * own `request` makes a stream for each body, at the price of the rest of the exchange.
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
    /** A request that waits for its connection is not told to the handler yet: it is given up when it is. */
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
        // 1xx only announce the answer.
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
