import { expect, test } from 'vitest';
import { freePort, openSocket } from '../support/raw-http.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

const dataDir = suiteDir();

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = openSocket(port);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

test('a node is ready once all its ports accept connections, and tells the reason before', async () => {
  const [http, grpc, ops] = [await freePort(), await freePort(), await freePort()];
  const env = { PORT: String(http), GRPC_PORT: String(grpc), OPS_PORT: String(ops) };
  const starting = runNode({ env, dataDir });
  const reasons = new Set<string>();
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${ops}/health/ready`).catch(() => null);
    if (answer?.status === 200) break;
    if (answer !== null) reasons.add(((await answer.json()) as { reason: string }).reason);
    await new Promise(setImmediate);
  }
  expect(await Promise.all([accepts(http), accepts(grpc)])).toEqual([true, true]);
  expect([...reasons]).toEqual(['starting: not all ports are open yet']);
  await using node = await starting;
  expect((await fetch(`${node.base}/health`)).status).toBe(200);
});
