import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';

/** Tells a caller's address: that of its connection, or what X-Forwarded-For says behind trusted proxies. */
export type ClientAddress = (remoteAddress: string | undefined, forwardedFor: string | undefined) => string;

/** `trustedProxies`: addresses and networks; without any, X-Forwarded-For means nothing. */
export function clientAddressBehind(trustedProxies: readonly string[]): ClientAddress {
  if (trustedProxies.length === 0) return (remoteAddress) => remoteAddress ?? 'unknown';
  const trusted = proxyAddr.compile([...trustedProxies]);
  return (remoteAddress, forwardedFor) => {
    if (remoteAddress === undefined) return 'unknown';
    if (forwardedFor === undefined || !trusted(remoteAddress, 0)) return remoteAddress;
    // From the nearest hop outwards: the first one that is not trusted is the caller.
    const hops = forwardedFor.split(',').map((hop) => hop.trim());
    let address = remoteAddress;
    for (let at = hops.length - 1; at >= 0; at -= 1) {
      const hop = hops[at] ?? '';
      if (isIP(hop) === 0) return address;
      address = hop;
      if (!trusted(hop, 0)) return hop;
    }
    return address;
  };
}
