import { describe, expect, test } from 'vitest';
import { StartError } from '../../../../src/runtime/start-error.ts';
import { checkReplicas, joinedMaxMs } from '../../../../src/store/cassandra/session/server-checks.ts';

/**
 * The sentence that an operator reads, or `fine`, and how long that took. `nodes`: the data centre of each, by time.
 */
async function sentenceAfter(
  nodes: (nowMs: number) => readonly string[],
  replication: Readonly<Record<string, number>>,
) {
  const time = { nowMs: 0 };
  const wait = {
    maxMs: joinedMaxMs,
    isOver: () => time.nowMs >= joinedMaxMs,
    pause: async (ms: number) => {
      time.nowMs += ms;
    },
  };
  const read = async () =>
    nodes(time.nowMs).map((dataCenter, at) => ({ address: `10.0.0.${at}`, dataCenter, version: 'a', isUp: at === 0 }));
  const sentence = await checkReplicas(read, new Map(Object.entries(replication)), wait).then(
    () => 'fine',
    (error: unknown) => (error instanceof StartError ? error.message : String(error)),
  );
  return { sentence, waitedMs: time.nowMs };
}
const sentenceOf = async (nodes: readonly string[], replication: Readonly<Record<string, number>>) =>
  (await sentenceAfter(() => nodes, replication)).sentence;

describe('a keyspace', () => {
  test('can have as many replicas as its data centre has nodes, or fewer', async () => {
    const all = [
      sentenceOf(['dc1'], { dc1: 1 }),
      sentenceOf(['dc1', 'dc1', 'dc1', 'dc1'], { dc1: 3 }),
      sentenceOf(['dc1', 'dc2', 'dc1', 'dc2', 'dc1'], { dc1: 3, dc2: 2 }),
    ];
    expect(await Promise.all(all)).toEqual(['fine', 'fine', 'fine']);
  });

  test('waits for the last node of its replicas, which has just started', async () => {
    const joining = (nowMs: number) => (nowMs < 20_000 ? ['dc1', 'dc1'] : ['dc1', 'dc1', 'dc1']);
    expect(await sentenceAfter(joining, { dc1: 3 })).toEqual({ sentence: 'fine', waitedMs: 20_000 });
    expect(await sentenceAfter(joining, { dc1: 2 })).toEqual({ sentence: 'fine', waitedMs: 0 });
    expect(await sentenceAfter(joining, { dc1: 4 })).toEqual({
      sentence: expect.stringContaining('has 3 of the 4 nodes'),
      waitedMs: joinedMaxMs,
    });
  });

  test('is refused with more replicas than nodes, with the number and the remedy', async () => {
    expect(await sentenceOf(['dc1'], { dc1: 3 })).toBe(
      'Data centre dc1 has 1 of the 3 nodes of Cassandra that 3 replicas need: add nodes first, or ask for fewer replicas by --replication dc1:1.',
    );
    expect(await sentenceOf(['dc1', 'dc1', 'dc1', 'dc2', 'dc2'], { dc1: 3, dc2: 3 })).toContain('--replication dc2:2');
  });

  test('is refused at once for an unknown data centre, with the known ones', async () => {
    expect(await sentenceOf(['dc1', 'dc1', 'dc2'], { dc1: 2, dc3: 1 })).toBe(
      'Cassandra has no data centre dc3: name those that it has (dc1, dc2) in --replication.',
    );
    expect((await sentenceAfter(() => ['dc1'], { dc3: 1 })).waitedMs).toBe(0);
  });
});
