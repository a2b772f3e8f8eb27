import type { RunSandboxRequest } from '../gen/svc/v1/sandbox_pb.ts';
import { FairPlaces } from '../runtime/limits/fair-places.ts';

/** Runs under way at once. Further runs wait. */
const runsAtOnceMax = 4;

/** The lines of a run that begins now. It ends in its current step once the signal aborts. */
export type SandboxRun = (signal: AbortSignal) => Promise<AsyncIterable<string>>;

/** GET /sandbox/run: a run of several parties through the service's own public API. Streams a line a step. */
export function sandboxService(run: SandboxRun) {
  const places = new FairPlaces({ perCaller: runsAtOnceMax, total: runsAtOnceMax });
  const anyone = '';

  return {
    async *runSandbox(_request: RunSandboxRequest, { signal }: { readonly signal: AbortSignal }) {
      if (places.held >= runsAtOnceMax) yield { line: '… other runs are under way; this one waits for them' };
      try {
        await places.take(anyone, signal);
      } catch {
        return;
      }
      try {
        for await (const line of await run(signal)) yield { line };
      } finally {
        places.leave(anyone);
      }
    },
  };
}
