import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';

/**
 * Returns a caller's address: its connection's, or the one in X-Forwarded-For if the connection comes from a trusted
 * proxy. Returns `unknown` for a connection without an address.
 */
export type ClientAddress = (remoteAddress: string | undefined, forwardedFor: string | undefined) => string;

/** `trustedProxies` holds addresses and networks. If it is empty, X-Forwarded-For is ignored. */
export function clientAddressBehind(trustedProxies: readonly string[]): ClientAddress {
  if (trustedProxies.length === 0) return (remoteAddress) => remoteAddress ?? 'unknown';
  const trusted = proxyAddr.compile([...trustedProxies]);
  return (remoteAddress, forwardedFor) => {
    if (remoteAddress === undefined) return 'unknown';
    if (forwardedFor === undefined || !trusted(remoteAddress, 0)) return remoteAddress;
    // From the nearest hop outwards: the first hop that is not trusted is the caller.
    let address = remoteAddress;
    for (const hop of forwardedFor.split(',').toReversed()) {
      if (isIP(hop.trim()) === 0) return address;
      address = hop.trim();
      if (!trusted(address, 0)) return address;
    }
    return address;
  };
}
