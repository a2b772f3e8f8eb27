const R_BYTES = 32;

/**
 * Whether R, the first half of a signature, is the identity point. This service calls these signatures invalid:
 * libraries differ on them (docs/verifying.md, "Ed25519"), and making one reveals the private key. Under a key that
 * checkPublicKey accepts, no other R of small order satisfies the equation.
 */
export function hasIdentityR(signature: Uint8Array): boolean {
  if (signature[0] !== 1) return false;
  for (let at = 1; at < R_BYTES; at += 1) if (signature[at] !== 0) return false;
  return true;
}
