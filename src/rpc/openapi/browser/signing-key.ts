// Runs in browsers, so it takes nothing of Node.

/** A private key that signs and cannot be read. */
export interface SigningKey {
  /** 32 bytes in standard base64. */
  readonly publicKey: string;
  /** Returns the Ed25519 signature of a digest, 64 bytes in standard base64. */
  sign(digest: Uint8Array<ArrayBuffer>): Promise<string>;
}

/** Reads an Ed25519 private key in PEM form (PKCS#8). Rejects with an Error that a person can act on. */
export async function signingKey(pem: string): Promise<SigningKey> {
  const [, base64] = /-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----/.exec(pem) ?? [];
  if (base64 === undefined) throw new Error('This is no private key in PEM form: it begins with BEGIN PRIVATE KEY.');
  if (globalThis.crypto?.subtle === undefined) throw new Error('Browsers sign over https or on localhost only.');
  let publicKey: string;
  let key: Awaited<ReturnType<typeof crypto.subtle.importKey>>;
  try {
    const der = Uint8Array.from(atob(base64.replaceAll(/\s/g, '')), (char) => char.charCodeAt(0));
    const readable = await crypto.subtle.importKey('pkcs8', der, 'Ed25519', true, ['sign']);
    const { x = '' } = await crypto.subtle.exportKey('jwk', readable);
    publicKey = `${x.replaceAll('-', '+').replaceAll('_', '/')}=`;
    key = await crypto.subtle.importKey('pkcs8', der, 'Ed25519', false, ['sign']);
  } catch (cause) {
    throw new Error('This is no Ed25519 private key, or the browser has no Ed25519.', { cause });
  }
  return {
    publicKey,
    async sign(digest) {
      const signature = new Uint8Array(await crypto.subtle.sign('Ed25519', key, digest));
      return btoa(String.fromCharCode(...signature));
    },
  };
}
