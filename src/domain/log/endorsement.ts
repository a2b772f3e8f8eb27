import { sha256 } from '../keys/hash.ts';
import { isServiceName } from './origin.ts';

/** By an endorsement the authority says which log key the service uses. */

interface Endorsement {
  /** The value of LOG_ORIGIN. */
  readonly serviceName: string;
  /** The public key of the log key, 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** What the authority signs: SHA-256("svc-log-key-v1" 00 ‖ name ‖ 00 ‖ public key). RangeError for another form of either. */
export function endorsementDigest({ serviceName, publicKey }: Endorsement): Uint8Array {
  if (!isServiceName(serviceName)) throw new RangeError(`No name of a service: ${serviceName}`);
  if (publicKey.length !== 32) throw new RangeError(`A public key has 32 bytes, not ${publicKey.length}`);
  const head = new TextEncoder().encode(`svc-log-key-v1\0${serviceName}\0`);
  const message = new Uint8Array(head.length + publicKey.length);
  message.set(head);
  message.set(publicKey, head.length);
  return sha256(message);
}
