import { defineConfig } from 'vitest/config';
import { patience } from './test/support/patience.ts';

/** Suites that judge how long something takes, or that keep every core busy by themselves: nothing may run beside them. */
const alone = [
  'test/api/append-stream.test.ts',
  'test/api/hang-ups.test.ts',
  'test/api/process-attacks.test.ts',
  'test/api/process-start.test.ts',
  'test/api/process-stop.test.ts',
  'test/api/webhook-isolation.test.ts',
  'test/cluster/faults.test.ts',
  'test/cluster/local-command.test.ts',
  'test/cluster/readiness.test.ts',
  'test/cluster/webhooks.test.ts',
  'test/contract/cassandra-outage.test.ts',
  'test/contract/redis-leases.test.ts',
  'test/simulation/seeds.test.ts',
];
const unit = ['test/unit/**/*.test.ts'];

/**
 * Unit tests are many small files, two at a time. So are the suites behind them, which start processes and share backends, each with a
 * keyspace, a cluster name, ports and directories of its own; those that nothing may run beside come last, one at a time.
 */
export default defineConfig({
  test: {
    ...patience,
    // Starts Redis and Cassandra when the first suite asks for them, and ends them with the run. Once for all projects, since it stands here.
    globalSetup: ['test/support/backends/global-setup.ts'],
    projects: [
      { extends: true, test: { name: 'unit', include: unit, maxWorkers: 2, sequence: { groupOrder: 0 } } },
      {
        extends: true,
        test: {
          name: 'service',
          include: ['test/**/*.test.ts'],
          exclude: [...unit, ...alone],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      { extends: true, test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 2 } } },
    ],
  },
});
