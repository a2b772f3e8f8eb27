import { LedgerError } from '../domain/errors.ts';
import type { RunSandboxRequest } from '../gen/svc/v1/sandbox_pb.ts';
import { FairPlaces } from '../runtime/limits/fair-places.ts';

/** Runs under way at once. Further runs wait. */
const runsAtOnceMax = 4;

/** The lines of a run that begins now. It ends in its current step once the signal aborts. */
export type SandboxRun = (signal: AbortSignal) => Promise<AsyncIterable<string>>;

/**
 * GET /sandbox/run: a run of several parties through the service's own public API. Streams a line a step. Addresses
 * get runs alternately, however many each waits for; beyond `waitingMax` the address that waits for most is refused.
 */
export function sandboxService(run: SandboxRun, waitingMax: number) {
  const bounds = { perCaller: runsAtOnceMax, total: runsAtOnceMax, waiting: waitingMax };
  const places = new FairPlaces(bounds, tooManyRuns);

  return {
    async *runSandbox(
      _request: RunSandboxRequest,
      { signal, address }: { readonly signal: AbortSignal; readonly address: string },
    ) {
      if (places.held >= runsAtOnceMax) yield { line: '… other runs are under way; this one waits for them' };
      try {
        await places.take(address, signal, () => new Error('the caller left'));
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      try {
        for await (const line of await run(signal)) yield { line };
      } finally {
        places.leave(address);
      }
    },
  };
}

function tooManyRuns(): LedgerError {
  return new LedgerError('overloaded', 'More runs of the sandbox wait than this node can take: retry in a minute.', {
    bound: 'SANDBOX_RUNS_WAITING',
  });
}
