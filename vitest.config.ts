import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { compileCache } from './test/support/compile-cache.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { isNightly } from './test/support/nightly.ts';
import { timeouts } from './test/support/timeouts.ts';

/** Suites that judge how long something takes, with little to spare: nothing may run beside them. */
const alone = [
  'test/api/append-stream.test.ts',
  'test/api/hang-ups.test.ts',
  'test/api/webhook-isolation.test.ts',
  'test/cluster/faults.test.ts',
  'test/contract/redis-leases.test.ts',
  // Keeps every core busy by itself.
  ...(isNightly ? ['test/simulation/seeds.test.ts'] : []),
];
/**
 * Suites that change or measure what is the whole process's (modules of Node's, its channels, its heap, milliseconds).
 * Each needs a process of its own.
 */
const apart = [
  'test/api/client-follow-checkpoints.test.ts',
  'test/api/webhook-own-address.test.ts',
  'test/unit/rpc/pipeline/answer-log-accesses.test.ts',
  'test/unit/service/masters/append-stream-lanes.test.ts',
  'test/unit/cluster/peers-unanswered.test.ts',
  'test/unit/rpc/grpc/health.test.ts',
  'test/unit/rpc/http/unread-looks.test.ts',
  'test/unit/test-tools/host-watch.test.ts',
  'test/unit/runtime/log-lines.test.ts',
  'test/unit/service/encoding/message-json.test.ts',
  'test/unit/service/signatures/signature-rules.test.ts',
  'test/unit/webhooks/subscription-index.test.ts',
];
const unit = ['test/unit/**/*.test.ts'];

/** Suites wait for timers, processes and disks for about a third of their time. */
const workers = 4;

function project(
  groupOrder: number,
  test: NonNullable<TestProjectInlineConfiguration['test']>,
): TestProjectInlineConfiguration {
  return { extends: true, test: { ...test, sequence: { groupOrder } } };
}

/**
 * Unit tests are many small files, four at a time. So are the suites behind them, which start processes and share
 * backends, each with a keyspace, a cluster name, ports and directories of its own; those that nothing may run beside
 * come last, one at a time.
 *
 * Where files are not isolated from each other a worker loads modules once, which otherwise takes longer than the tests
 * of most files. So no module of these may keep what a test does, and hooks belong into test files, or functions that
 * these call: what else a module does when it is loaded happens for the first file alone.
 */
export default defineConfig({
  test: {
    ...timeouts,
    // Node loads the modules itself, as it does for the service: a quarter less processor time than through Vite.
    experimental: { viteModuleRunner: false },
    // Of each node that a test starts in its own process a thread speaks gRPC, which loads its modules anew: with it in
    // half the time.
    env: compileCache,
    // Starts Redis and Cassandra when the first suite asks for them, and ends them with the run. Once for all projects,
    // since it stands here.
    globalSetup: ['test/support/backends/global-setup.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [
      project(0, { name: 'apart', include: apart, maxWorkers: workers }),
      project(0, { name: 'unit', include: unit, exclude: apart, isolate: false, maxWorkers: workers }),
      // One project: a worker ends where the next file is of another one.
      project(1, {
        name: 'service',
        include: ['test/**/*.test.ts'],
        exclude: [...unit, ...apart, ...alone],
        isolate: false,
        maxWorkers: workers,
      }),
      project(2, { name: 'alone', include: alone, isolate: false, maxWorkers: 1 }),
      ...(isNightly ? [project(3, { name: 'nightly', include: ['test/**/*.nightly.ts'], maxWorkers: 1 })] : []),
    ],
  },
});
