import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { VerifyingThreads } from '../../../../src/service/signatures/verifying-threads.ts';
import { settled } from '../../../support/clock.ts';

const digestOf = (text: string) => createHash('sha256').update(text).digest();
let threads: VerifyingThreads;
const open = (count: number) => {
  threads = new VerifyingThreads({ count });
  return threads;
};
afterEach(async () => {
  await threads[Symbol.asyncDispose]();
});

interface Pair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}
const pairs: readonly Pair[] = Array.from({ length: 5 }, () => generateKeyPairSync('ed25519'));
const pair = (at: number): Pair => pairs[at % pairs.length] as Pair;
const { publicKey, privateKey } = pair(0);
const digest = digestOf('event');
const signature = sign(null, digest, privateKey);

describe('VerifyingThreads', () => {
  test('each of many signatures gets its own verdict, whatever thread and batch it goes through', async () => {
    const { verify } = open(3);
    const isWrong = (at: number) => at % 7 === 3;
    const verdicts = await Promise.all(
      Array.from({ length: 500 }, (_, at) => {
        const digest = digestOf(`event ${at}`);
        const signature = sign(null, isWrong(at) ? digestOf('another') : digest, pair(at).privateKey);
        return verify(digest, signature, pair(at).publicKey);
      }),
    );
    expect(verdicts).toEqual(verdicts.map((_, at) => !isWrong(at)));
  });

  test('a good signature under another key does not verify', async () => {
    const { verify } = open(1);
    expect(await verify(digest, signature, pair(1).publicKey)).toBe(false);
    expect(await verify(digest, signature, publicKey)).toBe(true);
  });

  test('a signature changed in any byte does not verify', async () => {
    const { verify } = open(2);
    const changed = Array.from(signature, (byte, at) => {
      const copy = Buffer.from(signature);
      copy[at] = byte ^ 1;
      return verify(digest, copy, publicKey);
    });
    expect(await Promise.all(changed)).toEqual(changed.map(() => false));
  });

  test('what is changed after the call was made does not change the verdict', async () => {
    const { verify } = open(1);
    const changed = Buffer.from(signature);
    const asked = verify(digest, changed, publicKey);
    await new Promise((resolve) => setImmediate(resolve));
    changed.fill(0);
    expect(await asked).toBe(true);
  });

  test.each([
    ['a digest of 31 bytes', 31, 64, publicKey],
    ['a signature of 63 bytes', 32, 63, publicKey],
    ['a key of another kind', 32, 64, generateKeyPairSync('x25519').publicKey],
  ])('%s is a mistake of the caller', async (_what, digestBytes, signatureBytes, key) => {
    const { verify } = open(1);
    await expect(verify(Buffer.alloc(digestBytes), Buffer.alloc(signatureBytes), key)).rejects.toThrow(TypeError);
  });

  test('more than can be verified in a second is refused as overloaded, and the rest is answered', async () => {
    const { verify } = open(1);
    const asked = await Promise.allSettled(Array.from({ length: 10_100 }, () => verify(digest, signature, publicKey)));
    const refused = asked.filter((one) => one.status === 'rejected');
    expect(refused.length).toBe(100);
    expect(refused[0]?.reason).toMatchObject({ code: 'overloaded' });
    expect(asked.filter((one) => one.status === 'fulfilled' && one.value).length).toBe(10_000);
  });

  test('signatures of calls go before those of reads, however many reads wait', async () => {
    const { verify, verifyRead } = open(1);
    const order: string[] = [];
    const read = () => verifyRead(digest, signature, publicKey).then(() => void order.push('read'));
    const reads = Array.from({ length: 2_000 }, read);
    await reads[0];
    order.length = 0;
    expect(await verify(digest, signature, publicKey)).toBe(true);
    // Those that the thread has already: two messages of 16, and what it answered meanwhile.
    expect(order.length).toBeLessThan(80);
    await Promise.all(reads);
  });

  test('reads that wait for their signatures are refused when the threads close', async () => {
    const closed = open(1);
    const asked = closed.verifyRead(digest, signature, publicKey);
    await Promise.all([closed[Symbol.asyncDispose](), expect(asked).rejects.toMatchObject({ code: 'unavailable' })]);
  });

  test('signatures that a thread works on when the threads close are refused as unavailable', async () => {
    const closed = new VerifyingThreads({
      count: 1,
      script: new URL('../../../support/silent-thread.ts', import.meta.url),
    });
    threads = closed;
    const asked = Array.from({ length: 4 }, () => closed.verify(digest, signature, publicKey));
    // They are handed to the thread.
    await settled();
    const answers = Promise.allSettled(asked);
    await closed[Symbol.asyncDispose]();
    const refused = { status: 'rejected', reason: expect.objectContaining({ code: 'unavailable' }) };
    expect(await answers).toEqual([refused, refused, refused, refused]);
  });

  test('a thread that ends fails what it had and is replaced: nobody waits for ever', async () => {
    threads = new VerifyingThreads({ count: 1, script: new URL('../../../support/ending-thread.ts', import.meta.url) });
    for (let at = 0; at < 3; at++) {
      await expect(threads.verify(digestOf('event'), Buffer.alloc(64), pair(at).publicKey)).rejects.toThrow();
    }
  });

  test('a thread with as many keys as it may have is replaced, though signatures always wait', async () => {
    const script = new URL('../../../support/full-thread.ts', import.meta.url);
    threads = new VerifyingThreads({ count: 2, keysMax: 80, script });
    const jwk = publicKey.export({ format: 'jwk' });
    // The cache of keys makes one anew for each signature if there are more signers than it holds.
    const ask = () => threads.verify(digest, signature, createPublicKey({ key: jwk, format: 'jwk' }));
    expect(new Set(await Promise.all(Array.from({ length: 600 }, ask)))).toEqual(new Set([true]));
  });

  test('after closing, signatures are refused as unavailable', async () => {
    const closed = open(1);
    await closed[Symbol.asyncDispose]();
    await expect(closed.verify(digest, signature, publicKey)).rejects.toMatchObject({ code: 'unavailable' });
  });
});
