import { expect, test } from 'vitest';
import { waitingLinesMaxBytes } from '../../src/runtime/telemetry/line-writer.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { suiteDir } from '../support/running-node.ts';
import { droppedLines, endUnread, leaveLines } from '../support/unread-output.ts';

const dir = suiteDir();

test('beyond 4 MiB that nobody reads a node drops lines, counts them, and serves and stops', async () => {
  await using node = await startNodeProcess({
    DATA_DIR: `${dir}/full`,
    LOG_LEVEL: 'info',
    NODE_OPTIONS: '--max-old-space-size=256',
  });
  node.child.stdout?.pause();
  const lineMinBytes = 150;
  await leaveLines(node, 10_000);
  expect(await droppedLines(node)).toBe(0);
  await leaveLines(node, waitingLinesMaxBytes / lineMinBytes);
  const lost = await droppedLines(node);
  expect(lost).toBeGreaterThan(0);
  await leaveLines(node, 1_000);
  expect(await droppedLines(node)).toBe(lost + 1_000);
  const { code, tookMs, bound } = await endUnread(node, 'SIGTERM');
  expect(code).toBe(0);
  expect(tookMs).toBeLessThan(bound(9_000));
}, 180_000);
