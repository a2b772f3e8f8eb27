import { createHash, timingSafeEqual } from 'node:crypto';
import { ChannelCredentials, ServerCredentials } from '@grpc/grpc-js';

/** PEM texts; the authority is the cluster's own and signs nothing but nodes. */
export interface PeerTls {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** How nodes prove to each other that they are nodes: by certificates, by a secret that all know, or by both. */
export interface PeerSecurity {
  readonly tls: PeerTls | null;
  readonly secret: string | null;
}

export function channelCredentials({ tls }: PeerSecurity): ChannelCredentials {
  if (tls === null) return ChannelCredentials.createInsecure();
  // Nodes move between addresses; being signed by the cluster's authority is what makes one a node.
  return ChannelCredentials.createSsl(tls.ca, tls.key, tls.cert, { checkServerIdentity: () => undefined });
}

export function serverCredentials({ tls }: PeerSecurity): ServerCredentials {
  if (tls === null) return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(tls.ca, [{ cert_chain: tls.cert, private_key: tls.key }], true);
}

/** Compares in a time that says nothing about where two texts differ. */
export function isSecret(given: unknown, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return typeof given === 'string' && timingSafeEqual(digest(given), digest(expected));
}
