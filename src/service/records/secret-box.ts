import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { sha256Hex } from '../../domain/keys/hash.ts';

export type SecretBox = ReturnType<typeof createSecretBox>;

export const SECRETS_KEY_BYTES = 32;

const FORMAT = 1;
const SALT_BYTES = 28;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + SALT_BYTES;

/**
 * Encrypts secrets at rest with AES-256-GCM. Each secret has its own key, derived from the node's secrets key and a
 * random salt, so that no key is used twice with a nonce. A sealed text opens only in the context that it was sealed
 * for, so that a row cannot be moved to another record. `random` makes the salts. Throws RangeError unless the secrets
 * key has 32 bytes.
 */
export function createSecretBox(secretsKey: Uint8Array, random: (lengthBytes: number) => Uint8Array) {
  if (secretsKey.length !== SECRETS_KEY_BYTES) throw new RangeError(`A secrets key has ${SECRETS_KEY_BYTES} bytes`);
  const sealingKey = Buffer.from(hkdfSync('sha256', secretsKey, '', 'svc-secret-box-v1', 32));

  const keyOf = (salt: Uint8Array): Buffer => createHmac('sha256', sealingKey).update(salt).digest();
  const nonceOf = (salt: Uint8Array): Uint8Array => salt.subarray(SALT_BYTES - NONCE_BYTES);

  return Object.freeze({
    /** Fingerprint of the secrets key, hex. A node whose fingerprint differs from the store's refuses to start. */
    fingerprint: sha256Hex(Buffer.from(hkdfSync('sha256', secretsKey, '', 'svc-secrets-fingerprint-v1', 32))),

    /** Seals bytes for `context` (kind and id of their record). Returns base64 text. */
    seal(plain: Uint8Array, context: string): string {
      const salt = random(SALT_BYTES);
      const cipher = createCipheriv('aes-256-gcm', keyOf(salt), nonceOf(salt), { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(context, 'utf8'));
      const body = cipher.update(plain);
      return Buffer.concat([Uint8Array.of(FORMAT), salt, body, cipher.final(), cipher.getAuthTag()]).toString('base64');
    },

    /** Opens a text that was sealed for the same context with the same key. Throws if it was changed. */
    open(sealed: string, context: string): Buffer {
      const bytes = Buffer.from(sealed, 'base64');
      if (bytes.length < HEAD_BYTES + TAG_BYTES || bytes[0] !== FORMAT) throw new Error('This is no sealed secret.');
      const salt = bytes.subarray(1, HEAD_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', keyOf(salt), nonceOf(salt), { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(context, 'utf8'));
      decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
      return Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES, bytes.length - TAG_BYTES)), decipher.final()]);
    },
  });
}
