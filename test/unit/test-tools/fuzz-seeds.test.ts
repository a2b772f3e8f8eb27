import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { SeededRandom } from '../../simulation/random.ts';
import { caseOf } from '../../support/fuzz-http1.ts';
import { FuzzSeeds } from '../../support/fuzz-seeds.ts';
import { fuzzConnection } from '../../support/http2-fuzz.ts';

const of = (seeds: FuzzSeeds, count: number) => Array.from({ length: count }, () => seeds.next());

test('a fuzzer runs the seeds of its corpus, then one after the other, and names them', () => {
  const seeds = new FuzzSeeds([1, 7], null);
  const [one, two, first = 0, ...more] = of(seeds, 5);
  expect([one, two, ...more]).toEqual([1, 7, first + 1, first + 2]);
  expect(seeds.count).toBe(5);
  expect(`${seeds}`).toBe(`seeds 1, 7, ${first} to ${first + 2} (FUZZ_SEED=… replays one)`);
  expect(`${new FuzzSeeds([1, 7], null)}`).toMatch(/^seeds 1, 7, \d+ and on \(FUZZ_SEED/);
});

test('with FUZZ_SEED a fuzzer runs that seed alone', () => {
  const seeds = new FuzzSeeds([1, 7], '24');
  expect([of(seeds, 3), `${seeds}`]).toEqual([[24, 24, 24], 'seed 24']);
  for (const wrong of ['', 'x', '1.5']) expect(() => new FuzzSeeds([], wrong)).toThrow('FUZZ_SEED');
});

test('a seed makes the same HTTP/1 case each time, and another seed another one', () => {
  const made = [5, 5, 6].map((seed) => Buffer.concat(caseOf(new SeededRandom(seed))).toString('latin1'));
  expect(made[0]).toBe(made[1]);
  expect(made[0]).not.toBe(made[2]);
});

test('a seed sends the same HTTP/2 frames each time, and another seed other ones', async () => {
  const received: Buffer[] = [];
  await using server = createServer((socket) => {
    const pieces: Buffer[] = [];
    socket.on('data', (piece) => pieces.push(piece)).on('error', () => {});
    socket.on('close', () => received.push(Buffer.concat(pieces)));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  for (const [at, seed] of [5, 5, 6].entries()) {
    await fuzzConnection({ grpc: `127.0.0.1:${address.port}` }, new SeededRandom(seed), 20);
    await expect.poll(() => received.length, { interval: 5 }).toBe(at + 1);
  }
  const [one, again, other] = received;
  expect(one?.length).toBeGreaterThan(100);
  expect(again).toEqual(one);
  expect(other).not.toEqual(one);
});
