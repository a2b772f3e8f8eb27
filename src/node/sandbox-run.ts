import { tell } from '../sandbox/steps.ts';
import { story } from '../sandbox/story.ts';
import { skippedWebhookSteps, webhookSteps } from '../sandbox/webhook-steps.ts';
import { ownAddress } from './own-address.ts';
import type { NodeContext } from './subsystems/context.ts';

/** The lines of a run of the sandbox through the node's own HTTP port. `certificate` is null if it has no TLS. */
export function sandboxRun(
  { config, production, ownsShardOf, now }: NodeContext,
  http: { readonly port: number },
  certificate: Buffer | null,
  signal: AbortSignal,
): AsyncIterable<string> {
  const hooks = production
    ? skippedWebhookSteps('webhooks go to public addresses alone, and this run has none')
    : webhookSteps(ownsShardOf);
  return tell(story(ownAddress(config, http, certificate), hooks, now), signal);
}
