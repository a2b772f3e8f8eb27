import { expect, test } from 'vitest';
import { StartError } from '../../../../src/runtime/start-error.ts';
import { type SchemaNode, untilAgreed, type Wait } from '../../../../src/store/cassandra/session/schema-agreement.ts';

const minuteMs = 60_000;

/** Time that passes by waiting alone. */
function newWait(maxMs = 4 * minuteMs): Wait & { readonly nowMs: number } {
  let nowMs = 0;
  return {
    get nowMs() {
      return nowMs;
    },
    maxMs,
    isOver: () => nowMs >= maxMs,
    pause: async (ms: number) => {
      nowMs += ms;
    },
  };
}

const node = (address: string, version: string, isUp = true): SchemaNode => {
  return { address, dataCenter: 'dc1', version, isUp };
};

test('nodes that agree need no wait', async () => {
  const wait = newWait();
  await untilAgreed(async () => [node('10.0.0.1', 'a'), node('10.0.0.2', 'a')], wait);
  expect(wait.nowMs).toBe(0);
});

test('a node that pulls a missed schema after a minute is waited for', async () => {
  const wait = newWait();
  const nodes = async () => [node('10.0.0.1', 'b'), node('10.0.0.2', wait.nowMs < 1.2 * minuteMs ? 'a' : 'b')];
  await untilAgreed(nodes, wait);
  expect(wait.nowMs).toBeGreaterThan(minuteMs);
});

test('a busy node counts as not agreed and is asked again', async () => {
  const wait = newWait();
  await untilAgreed(async () => {
    if (wait.nowMs < 3 * minuteMs) throw new Error('OperationTimedOutError');
    return [node('10.0.0.1', 'a')];
  }, wait);
  expect(wait.nowMs).toBeGreaterThanOrEqual(3 * minuteMs);
});

test('nodes that do not agree in four minutes are named with the remedy', async () => {
  const wait = newWait();
  const nodes = [
    node('10.0.0.1', 'b'),
    node('10.0.0.2', 'a', false),
    node('10.0.0.3', 'b'),
    node('10.0.0.4', 'c'),
    node('10.0.0.5', 'b'),
  ];
  const refused = untilAgreed(async () => nodes, wait);
  await expect(refused).rejects.toBeInstanceOf(StartError);
  await expect(refused).rejects.toThrow(
    'within 4 minutes: 10.0.0.2 has a and is down, 10.0.0.4 has c; the others have b. Start what is down',
  );
  expect(wait.nowMs).toBe(4 * minuteMs);
});

test('a silence of all nodes for four minutes is reported', async () => {
  const refused = untilAgreed(async () => {
    throw new Error('NoHostAvailableError');
  }, newWait());
  await expect(refused).rejects.toThrow('within 4 minutes: none of them answers. See by `nodetool status`');
});

test.each([
  [3_000, 'within 3 seconds: '],
  [2 * minuteMs, 'within 2 minutes: '],
])('after a wait of %i ms the error says how long it was', async (maxMs, text) => {
  await expect(untilAgreed(async () => [], newWait(maxMs))).rejects.toThrow(text);
});
