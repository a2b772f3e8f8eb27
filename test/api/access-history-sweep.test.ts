import { afterEach, expect, test, vi } from 'vitest';
import { LmdbAccessLog } from '../../src/store/lmdb/access/access-log.ts';
import { runNode } from '../support/running-node.ts';
import { minute } from '../support/webhook-order.ts';

const dayMs = 24 * 60 * minute;

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test('a node sweeps access history older than 90 days every minute, also after a failed sweep', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const sweep = vi.spyOn(LmdbAccessLog.prototype, 'sweep').mockRejectedValueOnce(new Error('the disk is full'));
  const node = await runNode({ env: {} });
  for (let at = 0; at < 3; at++) {
    await vi.advanceTimersByTimeAsync(minute);
    expect(sweep).toHaveBeenCalledTimes(at + 1);
    const before = sweep.mock.calls[at]?.[0] ?? 0;
    expect(Math.abs(before - (Date.now() - 90 * dayMs))).toBeLessThan(minute);
  }
  expect(node.lines.join('\n')).toContain('sweeping failed');
  await node.stop();
  await vi.advanceTimersByTimeAsync(minute);
  expect(sweep).toHaveBeenCalledTimes(3);
  await node[Symbol.asyncDispose]();
});
