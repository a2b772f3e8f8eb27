import { describe, expect, test, vi } from 'vitest';
import { watchHost } from '../../support/host-watch.ts';

const stat = vi.hoisted(() => ({ text: '' }));
vi.mock(import('node:fs'), async (original) => ({ ...(await original()), readFileSync: (() => stat.text) as never }));

/** /proc/stat with user, nice, system, idle, iowait, irq, softirq, steal. */
const after = (...ticks: number[]) => {
  stat.text = `cpu  ${ticks.join(' ')} 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n`;
};

describe.runIf(process.platform === 'linux')('what the host keeps', () => {
  test.each([
    ['nothing', [150, 10, 20, 100, 0, 0, 0, 30], 0, 90],
    ['little', [150, 10, 40, 100, 0, 0, 0, 35], 0.059, 90],
    ['much', [150, 10, 20, 900, 0, 0, 0, 70], 0.4, Number.POSITIVE_INFINITY],
  ])('is counted of the time that there was work for: %s', (_, ticks, share, bound) => {
    after(100, 10, 10, 50, 0, 0, 0, 30);
    const host = watchHost();
    after(...ticks);
    expect(host.keptShare()).toBeCloseTo(share, 2);
    expect(host.bound(90)).toBe(bound);
    expect(host.isFair()).toBe(bound === 90);
  });
});
