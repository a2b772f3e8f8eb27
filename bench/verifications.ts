import { generateKeyPairSync, type KeyObject, randomBytes, sign, verify } from 'node:crypto';

interface Signed {
  readonly publicKey: KeyObject;
  readonly digest: Buffer;
  readonly signature: Buffer;
}

/** What a thread has done, and its CPU time in µs. */
export interface Counted {
  readonly count: number;
  readonly cpuUs: number;
}

/** Ed25519 signatures of 32-byte digests, one by each of so many keys. */
export function signaturesOf(keyCount: number): Signed[] {
  return Array.from({ length: keyCount }, () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const digest = randomBytes(32);
    return { publicKey, digest, signature: sign(null, digest, privateKey) };
  });
}

/** Verifies them by `crypto.verify` on this thread, one after another, as often as it comes to in this time. */
export function verifyFor(seconds: number, signatures: readonly Signed[]): Counted {
  const end = performance.now() + seconds * 1_000;
  const cpu = process.threadCpuUsage();
  let count = 0;
  while (performance.now() < end) {
    for (const { publicKey, digest, signature } of signatures) {
      if (!verify(null, digest, publicKey, signature)) throw new Error('a good signature was refused');
      count += 1;
    }
  }
  const { user, system } = process.threadCpuUsage(cpu);
  return { count, cpuUs: user + system };
}
