import type { RunSandboxRequest } from '../gen/svc/v1/sandbox_pb.ts';
import { FairPlaces } from '../runtime/limits/fair-places.ts';
import type { SandboxTarget } from './party.ts';
import { tell } from './steps.ts';
import { story } from './story.ts';
import type { WebhookSteps } from './webhook-steps.ts';

/** Runs under way at once. Further runs wait. */
const runsAtOnceMax = 4;

export interface SandboxParts {
  /** Called for each run: the address is known only once the listeners are open. */
  target(): SandboxTarget;
  webhookSteps(): WebhookSteps;
  now(): number;
}

/** GET /sandbox/run: a run of several parties through the service's own public API. Streams a line a step. */
export function sandboxService(parts: SandboxParts) {
  const bounds = { perCaller: runsAtOnceMax, total: runsAtOnceMax, waiting: Number.POSITIVE_INFINITY };
  const places = new FairPlaces(bounds, () => new Error('never: any number of runs may wait'));
  const anyone = '';

  return {
    async *runSandbox(_request: RunSandboxRequest, { signal }: { readonly signal: AbortSignal }) {
      if (places.held >= runsAtOnceMax) yield { line: '… other runs are under way; this one waits for them' };
      try {
        await places.take(anyone, signal, () => new Error('the caller left'));
      } catch {
        return;
      }
      try {
        const steps = story(parts.target(), parts.webhookSteps(), () => parts.now());
        for await (const line of tell(steps, signal)) yield { line };
      } finally {
        places.leave(anyone);
      }
    },
  };
}
