import { describe, expect, test } from 'vitest';
import { checkReplicas } from '../../src/store/cassandra/server-checks.ts';
import { StartError } from '../../src/store/start-error.ts';

/** The one sentence that an operator reads, or that nothing was wrong. */
function told(nodes: readonly string[], replication: Readonly<Record<string, number>>): string {
  try {
    checkReplicas(nodes, new Map(Object.entries(replication)));
    return 'fine';
  } catch (error) {
    return error instanceof StartError ? error.message : String(error);
  }
}

describe('a keyspace is asked for with', () => {
  test('as many replicas as its data centre has nodes, or fewer: it can be made', () => {
    expect([
      told(['dc1'], { dc1: 1 }),
      told(['dc1', 'dc1', 'dc1', 'dc1'], { dc1: 3 }),
      told(['dc1', 'dc2', 'dc1', 'dc2', 'dc1'], { dc1: 3, dc2: 2 }),
    ]).toEqual(['fine', 'fine', 'fine']);
  });

  test('more replicas than its data centre has nodes: it is told how many there are, and what to ask for', () => {
    expect(told(['dc1'], { dc1: 3 })).toBe(
      'Data centre dc1 has 1 of the 3 nodes of Cassandra that 3 replicas need: add nodes first, or ask for fewer replicas by --replication dc1:1.',
    );
    expect(told(['dc1', 'dc1', 'dc1', 'dc2', 'dc2'], { dc1: 3, dc2: 3 })).toContain('--replication dc2:2');
  });

  test('a data centre that is not there: those that are there are named', () => {
    expect(told(['dc1', 'dc1', 'dc2'], { dc1: 2, dc3: 1 })).toBe(
      'Cassandra has no data centre dc3: name those that it has (dc1, dc2) in --replication.',
    );
  });
});
