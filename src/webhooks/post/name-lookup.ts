import { Resolver } from 'node:dns/promises';
import { isLocalName } from '../../service/webhooks/webhook-target.ts';

/** Resolves with the addresses of a host name, IPv4 first. Empty if it has none, or if DNS does not answer. */
export type NameLookup = (host: string) => Promise<readonly string[]>;

const queryTimeoutMs = 2_000;
const queryTries = 2;

/**
 * Looks names up in DNS with c-ares: getaddrinfo would block the few threads that also verify signatures. So /etc/hosts
 * is not used. Local names are loopback (RFC 6761, section 6.3). `servers` replace the machine's name servers.
 */
export function dnsLookup(servers?: readonly string[]): NameLookup {
  const resolver = new Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  if (servers !== undefined) resolver.setServers(servers);
  return async (host) => {
    if (isLocalName(host)) return ['127.0.0.1', '::1'];
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    return [v4, v6].flatMap((found) => (found.status === 'fulfilled' ? found.value : []));
  };
}
