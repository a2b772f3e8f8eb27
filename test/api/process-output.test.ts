import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startNodeProcess } from '../support/node-process.ts';
import { suiteDir } from '../support/running-node.ts';
import { droppedLines, endUnread, leaveLines } from '../support/unread-output.ts';

const dir = suiteDir();

test('SIGTERM ends a node in time although nobody reads its stdout and stderr', async () => {
  await using node = await startNodeProcess({ DATA_DIR: `${dir}/unread`, LOG_LEVEL: 'info' });
  node.child.stdout?.pause();
  node.child.stderr?.pause();
  await leaveLines(node);
  const { code, tookMs, bound } = await endUnread(node, 'SIGTERM');
  expect(code).toBe(0);
  expect(tookMs).toBeLessThan(bound(9_000));
}, 60_000);

test('a second signal later ends a node at once although output waits to be read', async () => {
  await using node = await startNodeProcess({ DATA_DIR: `${dir}/twice`, LOG_LEVEL: 'info' });
  node.child.stdout?.pause();
  await leaveLines(node);
  // A request under way. Without it the node has ended before the second signal.
  const { hostname, port } = new URL(node.base);
  const socket = connect(Number(port), hostname).on('error', () => {});
  socket.write('POST /v1/developer/register HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{');
  await delay(200);
  const { code, tookMs, bound } = await endUnread(node, 'SIGTERM', 'SIGINT');
  socket.destroy();
  expect(code).toBe(1);
  expect(tookMs).toBeLessThan(bound(2_000));
  node.child.stdout?.resume();
  expect((await node.ended).stderr).toBe('');
}, 60_000);

test('a node without a reader of its log serves on, counts lost lines, and exits with 0', async () => {
  await using node = await startNodeProcess({ DATA_DIR: `${dir}/closed`, LOG_LEVEL: 'info' });
  node.child.stdout?.destroy();
  node.child.stderr?.destroy();
  await leaveLines(node, 50);
  await delay(100);
  await leaveLines(node, 50);
  expect(await droppedLines(node)).toBeGreaterThan(50);
  expect((await endUnread(node, 'SIGTERM')).code).toBe(0);
}, 60_000);
