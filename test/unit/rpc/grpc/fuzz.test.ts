import { expect, test } from 'vitest';
import { FuzzSeeds } from '../../../support/fuzz-seeds.ts';
import { startFuzzedNode } from '../../../support/grpc-fuzz-rig.ts';
import { corpus, fuzzFor } from '../../../support/http2-fuzz.ts';

test('after valid and invalid frames of all kinds the gRPC port still serves and holds nothing', async () => {
  await using node = await startFuzzedNode();
  const seeds = new FuzzSeeds(corpus);
  console.log(`fuzzing HTTP/2 with ${seeds}`);
  await fuzzFor(node.target, 1_500, seeds);
  expect(seeds.count, `${seeds}`).toBeGreaterThan(5);
  await node.expectWhole(seeds);
});
