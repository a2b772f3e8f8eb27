import { Agent } from 'undici';
import { urlHost } from '../runtime/config/url-host.ts';
import type { SandboxTarget } from '../sandbox/party.ts';
import { tell } from '../sandbox/steps.ts';
import { story } from '../sandbox/story.ts';
import { skippedWebhookSteps, webhookSteps } from '../sandbox/webhook-steps.ts';
import type { Config } from './config.ts';
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

/** Trusts exactly the node's own certificate, which names the service and not this address. */
function ownAddress(config: Config, http: { readonly port: number }, certificate: Buffer | null): SandboxTarget {
  const everywhere = config.host === '0.0.0.0' || config.host === '::';
  const host = urlHost(everywhere ? '127.0.0.1' : config.host);
  if (certificate === null) return { baseUrl: `http://${host}:${http.port}` };
  const connect = { ca: certificate, checkServerIdentity: () => undefined };
  return { baseUrl: `https://${host}:${http.port}`, dispatcher: new Agent({ connect }) };
}
