import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { connectFormat, unpackMessage } from '../../../../src/rpc/connect/body.ts';

const largest = gzipSync(Buffer.alloc(1024 * 1024));
const format = connectFormat('application/proto');

function unpack(address: string, body: Buffer, signal = new AbortController().signal): Promise<Buffer> {
  if (format === null) throw new Error('Connect has this media type');
  return unpackMessage(format, 'gzip', body, { address, signal });
}

test('a small message does not wait for large ones of its own address', async () => {
  const many = Array.from({ length: 50 }, () => unpack('192.0.2.1', largest));
  let isAnyDone = false;
  for (const one of many) void one.then(() => (isAnyDone = true));
  expect(`${await unpack('192.0.2.1', gzipSync('small'))}`).toBe('small');
  expect(isAnyDone).toBe(false);
  await Promise.all(many);
});

test('an address with many compressed messages does not keep another one waiting', async () => {
  let done = 0;
  const many = Array.from({ length: 60 }, async () => {
    await unpack('192.0.2.1', largest);
    done += 1;
  });
  expect((await unpack('192.0.2.2', largest)).length).toBe(1024 * 1024);
  expect(done).toBeLessThan(20);
  await Promise.all(many);
});

test('a message whose caller has left is not unpacked', async () => {
  const many = Array.from({ length: 10 }, () => unpack('192.0.2.1', largest));
  const caller = new AbortController();
  const left = unpack('192.0.2.1', largest, caller.signal);
  caller.abort();
  await expect(left).rejects.toMatchObject({ code: 'unavailable' });
  await Promise.all(many);
});
