import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { LogSigner } from '../../src/domain/log/checkpoint.ts';
import { type LogKey, logKey } from '../../src/domain/log/log-key.ts';
import { logVectors, ofHex } from './log-vectors.ts';

/** The private key of a seed (RFC 8410 PKCS#8). */
export function privateKeyOf(seedHex: string): KeyObject {
  return createPrivateKey({ key: ofHex(`302e020100300506032b657004220420${seedHex}`), format: 'der', type: 'pkcs8' });
}

export function knownKey(base64: string): LogKey {
  const key = logKey(base64);
  if (key === null) throw new Error(`refused: ${base64}`);
  return key;
}

const privateKey = privateKeyOf(logVectors.log_key.seed_hex);

/** The key that signed the checkpoints of the vectors. */
export const vectorKey = knownKey(logVectors.log_key.public_key_base64);

export const vectorSigner: LogSigner = {
  serviceName: 'ledger.example/v1',
  publicKey: vectorKey.publicKey,
  sign: (message) => sign(null, message, privateKey),
};
