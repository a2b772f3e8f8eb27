import { generateKeyPairSync, type KeyObject, randomBytes, sign, verify } from 'node:crypto';

/** What a thread has done, and its CPU time in µs. */
export interface Counted {
  readonly count: number;
  readonly cpuUs: number;
}

/** Verifies Ed25519 signatures of 32-byte digests by `crypto.verify` on this thread, with so many keys in turns. */
export class Verifications {
  readonly #signed: readonly { publicKey: KeyObject; digest: Buffer; signature: Buffer }[];

  constructor(keyCount: number) {
    this.#signed = Array.from({ length: keyCount }, () => {
      const { publicKey, privateKey } = generateKeyPairSync('ed25519');
      const digest = randomBytes(32);
      return { publicKey, digest, signature: sign(null, digest, privateKey) };
    });
  }

  /** As many as it comes to in this time. */
  during(seconds: number): Counted {
    const end = performance.now() + seconds * 1_000;
    const cpu = process.threadCpuUsage();
    let count = 0;
    while (performance.now() < end) {
      for (const { publicKey, digest, signature } of this.#signed) {
        if (!verify(null, digest, publicKey, signature)) throw new Error('a good signature was refused');
        count += 1;
      }
    }
    const { user, system } = process.threadCpuUsage(cpu);
    return { count, cpuUs: user + system };
  }
}
