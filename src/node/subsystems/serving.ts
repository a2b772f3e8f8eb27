import { LedgerError } from '../../domain/errors.ts';
import type { Followers } from '../../service/following/followers.ts';
import type { NodeCalls } from './calls.ts';
import type { NodeContext } from './context.ts';
import type { InternalPort } from './internal-port.ts';
import type { PublicPorts } from './public-ports.ts';

/** The node is ready. When it closes, it gives its shards away while its ports are open, and ends streams. */
export function startServing(
  { membership }: NodeContext,
  internal: InternalPort,
  { grpc }: PublicPorts,
  { pipeline }: NodeCalls,
  followers: Pick<Followers, 'drain'>,
): AsyncDisposable {
  internal.phase = 'serving';
  return {
    async [Symbol.asyncDispose]() {
      internal.phase = 'stopping';
      grpc.setServing(false);
      // They come back spread over seconds, and the other nodes take them from now on.
      followers.drain();
      await membership?.leave();
      pipeline.running.endStreams(stoppingNode());
    },
  };
}

function stoppingNode(): LedgerError {
  return new LedgerError(
    'unavailable',
    'This node is stopping: open a new stream, and send again what was not answered, with the same Idempotency-Keys.',
  );
}
