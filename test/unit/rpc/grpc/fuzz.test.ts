import { expect, test } from 'vitest';
import { expectWhole, startFuzzedNode } from '../../../support/grpc-fuzz-rig.ts';
import { fuzzFor } from '../../../support/http2-fuzz.ts';

test('frames of all kinds, right and wrong, leave the gRPC port whole and with nothing held', async () => {
  await using node = await startFuzzedNode();
  const firstSeed = Date.now() % 1_000_000_000;
  console.log(`first seed of the frames: ${firstSeed}`);
  expect((await fuzzFor({ grpc: node.grpcAddress }, 1_500, firstSeed)).length).toBeGreaterThan(5);
  await expectWhole(node);
});
