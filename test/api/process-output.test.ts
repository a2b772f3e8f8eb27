import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { watchHost } from '../support/host-watch.ts';
import { isNightly } from '../support/nightly.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { suiteDir } from '../support/running-node.ts';

const dir = suiteDir();

/** More lines than a pipe holds, which is some 300. */
const manyCalls = isNightly ? 1_500 : 700;

/** Calls that leave a line each. */
async function call(node: NodeProcess, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 50)
    await Promise.all(Array.from({ length: 50 }, async () => (await fetch(`${node.base}/v1/nothing`)).arrayBuffer()));
}

/** How many lines the node dropped, as it says itself. */
async function dropped(node: NodeProcess): Promise<number> {
  const text = await (await fetch(`${node.opsBase}/metrics`)).text();
  return Number(/^svc_log_lines_dropped_total (\d+)$/m.exec(text)?.[1]);
}

/** Waits for an end that reading what the process said must not bring about. */
async function exitOf(node: NodeProcess): Promise<number | null> {
  return new Promise((resolve) => node.child.once('exit', (code) => resolve(code)));
}

test('SIGTERM ends a node in time although nobody reads its stdout and stderr', async () => {
  await using node = await startNodeProcess({ DATA_DIR: `${dir}/unread`, LOG_LEVEL: 'info' });
  node.child.stdout?.pause();
  node.child.stderr?.pause();
  await call(node, manyCalls);
  const [host, begun] = [watchHost(), performance.now()];
  const exit = exitOf(node);
  node.child.kill('SIGTERM');
  expect(await exit).toBe(0);
  expect(performance.now() - begun).toBeLessThan(host.bound(9_000));
}, 60_000);

test('a second signal ends a node at once although output waits to be read', async () => {
  await using node = await startNodeProcess({ DATA_DIR: `${dir}/twice`, LOG_LEVEL: 'info' });
  node.child.stdout?.pause();
  await call(node, manyCalls);
  const [host, begun] = [watchHost(), performance.now()];
  const exit = exitOf(node);
  node.child.kill('SIGTERM');
  node.child.kill('SIGINT');
  expect([0, 1]).toContain(await exit);
  expect(performance.now() - begun).toBeLessThan(host.bound(2_000));
}, 60_000);

test('a node without a reader of its log serves on, counts lost lines, and exits with 0', async () => {
  await using node = await startNodeProcess({ DATA_DIR: `${dir}/closed`, LOG_LEVEL: 'info' });
  node.child.stdout?.destroy();
  node.child.stderr?.destroy();
  await call(node, 50);
  await delay(100);
  await call(node, 50);
  expect(await dropped(node)).toBeGreaterThan(50);
  const exit = exitOf(node);
  node.child.kill('SIGTERM');
  expect(await exit).toBe(0);
}, 60_000);
