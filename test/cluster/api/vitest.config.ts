import { defineConfig } from 'vitest/config';

/** What is true of an embedded node alone: its store's name, and what its files hold once it was stopped. */
const embeddedAlone = [
  'names the store',
  'in the name of an entity that must sign leaves nothing where nothing was signed',
  'has nothing in its history of calls that anybody may have made in its name',
  'has what it signed and was refused in its history',
  'calls about its root ledger are kept, whether there is one or not',
];

/** True of the node that was asked: it runs four sandbox runs at a time, and knows its own ports, not those of the address in front. */
const ofOneNode = [
  'six at once do not disturb each other: four run, two say that they wait',
  'to the service’s own ports is refused',
];
const isSpread = process.env.TEST_CLUSTER_API === 'spread';
const leftOut = isSpread ? [...embeddedAlone, ...ofOneNode] : embeddedAlone;

/** The API suite against three nodes: `npm run test:cluster-api`. */
export default defineConfig({
  test: {
    include: ['test/api/**/*.test.ts'],
    // They start a process of their own, look into the files of an embedded node, make its store fail, or set its clock.
    exclude: [
      'test/api/crash-*.test.ts',
      'test/api/process-*.test.ts',
      'test/api/webhook-crash.test.ts',
      'test/api/tampering.test.ts',
      'test/api/production.test.ts',
      'test/api/pack.test.ts',
      'test/api/append-stream-failures.test.ts',
      'test/api/failing-writes.test.ts',
      'test/api/webhook-clock.test.ts',
    ],
    testNamePattern: new RegExp(`^(?!.*(${leftOut.join('|')}))`),
    globalSetup: ['test/cluster/api/global-setup.ts'],
    // One node's worth of processor is shared by three nodes and Cassandra.
    maxWorkers: 1,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
