import type { RunSandboxRequest } from '../gen/svc/v1/sandbox_pb.ts';
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

/** GET /sandbox/run: a full run of several parties through the service's own public API. Streams a line a step. */
export function sandboxService(parts: SandboxParts) {
  let running = 0;
  const waiting = new Set<() => void>();

  /** Waits for a free place. Resolves with false if the caller left before it got one. */
  const enter = async (signal: AbortSignal): Promise<boolean> => {
    if (signal.aborted) return false;
    if (running < runsAtOnceMax) {
      running += 1;
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const turn = (): void => resolve(true);
    const gone = (): void => {
      if (waiting.delete(turn)) resolve(false);
    };
    waiting.add(turn);
    signal.addEventListener('abort', gone, { once: true });
    return promise;
  };
  const leave = (): void => {
    const [next] = waiting;
    if (next === undefined) {
      running -= 1;
      return;
    }
    waiting.delete(next);
    next();
  };

  return {
    async *runSandbox(_request: RunSandboxRequest, { signal }: { readonly signal: AbortSignal }) {
      if (running >= runsAtOnceMax) yield { line: '… other runs are under way, this one waits for its turn' };
      if (!(await enter(signal))) return;
      try {
        const steps = story(parts.target(), parts.webhookSteps(), () => parts.now());
        for await (const line of tell(steps, signal)) yield { line };
      } finally {
        leave();
      }
    },
  };
}
