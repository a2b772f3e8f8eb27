import { Resolver } from 'node:dns/promises';
import { isLocalName } from '../../service/webhooks/webhook-target.ts';

/** Addresses of a host name, IPv4 first; none if it has none. */
export type NameLookup = (host: string) => Promise<readonly string[]>;

const queryTimeoutMs = 2_000;
const queryTries = 2;

/**
 * Names are asked of DNS by c-ares. getaddrinfo would run on the few threads that also verify signatures, and a name server that does not
 * answer would hold these up. `servers` are asked in place of the machine's name servers. So /etc/hosts does not count; names of this host are loopback (RFC 6761, section 6.3).
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
