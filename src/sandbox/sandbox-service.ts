import type { RunSandboxRequest } from '../gen/svc/v1/sandbox_pb.ts';
import type { SandboxTarget } from './party.ts';
import { tell } from './steps.ts';
import { story } from './story.ts';
import type { WebhookSteps } from './webhook-steps.ts';

/** Runs at once; the next ones wait. */
const runsAtOnceMax = 4;

export interface SandboxParts {
  /** Known once the doors are open. */
  target(): SandboxTarget;
  webhookSteps(): WebhookSteps;
  now(): number;
}

/** GET /sandbox/run: a full run of several parties through the service's own public API, told as it happens. */
export function sandboxService(parts: SandboxParts) {
  let running = 0;
  const waiting: (() => void)[] = [];

  const enter = async (): Promise<void> => {
    if (running >= runsAtOnceMax) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
  };
  const leave = (): void => {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  };

  return {
    async *runSandbox(_request: RunSandboxRequest, call: { readonly signal: AbortSignal }) {
      if (running >= runsAtOnceMax) yield { line: '… other runs are under way, this one waits for its turn' };
      await enter();
      try {
        for await (const line of tell(story(parts.target(), parts.webhookSteps(), () => parts.now()))) {
          if (call.signal.aborted) return;
          yield { line };
        }
      } finally {
        leave();
      }
    },
  };
}
