import { Agent } from 'undici';
import { urlHost } from '../runtime/config/url-host.ts';
import type { SandboxTarget } from '../sandbox/party.ts';
import type { Config } from './config.ts';

/** Trusts exactly the node's own certificate, which names the service and not this address. */
export function ownAddress(config: Config, http: { readonly port: number }, certificate: Buffer | null): SandboxTarget {
  const everywhere = config.host === '0.0.0.0' || config.host === '::';
  const host = urlHost(everywhere ? '127.0.0.1' : config.host);
  if (certificate === null) return { baseUrl: `http://${host}:${http.port}` };
  const connect = { ca: certificate, checkServerIdentity: () => undefined };
  return { baseUrl: `https://${host}:${http.port}`, dispatcher: new Agent({ connect }) };
}
