import { defineConfig } from 'vitest/config';
import { timeouts } from '../../support/timeouts.ts';

/** The API suite against three nodes: `npm run test:cluster-api`. */
export default defineConfig({
  test: {
    include: ['test/api/**/*.test.ts'],
    // Suites that start a process, read files of an embedded node, make its store fail, or set its clock.
    exclude: [
      'test/api/crash-*.test.ts',
      'test/api/process-*.test.ts',
      'test/api/webhook-crash.test.ts',
      'test/api/tampering.test.ts',
      'test/api/production.test.ts',
      'test/api/append-stream-failures.test.ts',
      'test/api/failing-*.test.ts',
      'test/api/webhook-clock.test.ts',
    ],
    globalSetup: ['test/cluster/api/global-setup.ts'],
    // One node's worth of processor is shared by three nodes and Cassandra.
    maxWorkers: 1,
    ...timeouts,
  },
});
