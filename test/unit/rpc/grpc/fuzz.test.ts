import { expect, test } from 'vitest';
import { expectWhole, startFuzzedNode } from '../../../support/grpc-fuzz-rig.ts';
import { fuzzFor } from '../../../support/http2-fuzz.ts';

test('after valid and invalid frames of all kinds the gRPC port still serves and holds nothing', async () => {
  await using node = await startFuzzedNode();
  const firstSeed = Date.now() % 1_000_000_000;
  console.log(`first seed of the frames: ${firstSeed}`);
  expect((await fuzzFor({ grpc: node.grpcAddress }, 1_500, firstSeed)).length).toBeGreaterThan(5);
  await expectWhole(node);
});
