import { createHash, timingSafeEqual } from 'node:crypto';
import { ChannelCredentials, ServerCredentials } from '@grpc/grpc-js';

/** PEM texts. The authority `ca` signs nothing but the certificates of the cluster's nodes. */
export interface PeerTls {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** How nodes authenticate to each other: by certificates, a shared secret, or both. */
export interface PeerSecurity {
  readonly tls: PeerTls | null;
  readonly secret: string | null;
}

export function channelCredentials({ tls }: PeerSecurity): ChannelCredentials {
  if (tls === null) return ChannelCredentials.createInsecure();
  // The server name is not checked: nodes move between addresses.
  return ChannelCredentials.createSsl(tls.ca, tls.key, tls.cert, { checkServerIdentity: () => undefined });
}

export function serverCredentials({ tls }: PeerSecurity): ServerCredentials {
  if (tls === null) return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(tls.ca, [{ cert_chain: tls.cert, private_key: tls.key }], true);
}

/** Whether `given` is the expected secret. Compares in constant time. */
export function isSecret(given: unknown, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return typeof given === 'string' && timingSafeEqual(digest(given), digest(expected));
}
