import { defineConfig } from 'vitest/config';
import { timeouts } from '../support/timeouts.ts';

/** `npm run test:docker`: what needs a container engine, and the contract suite on the backends that it runs. */
export default defineConfig({
  test: {
    include: ['test/docker/*.docker.ts', 'test/contract/cassandra-*.test.ts', 'test/contract/redis-leases.test.ts'],
    globalSetup: ['test/support/backends/global-setup.ts'],
    // As in the ordinary run: Node loads the modules itself, as it does for the service.
    experimental: { viteModuleRunner: false },
    // Here nothing is skipped.
    env: { REQUIRE_BACKENDS: '1' },
    // One after the other: several Cassandras at once are more than a small machine has memory for.
    fileParallelism: false,
    ...timeouts,
    // Compose asks the engine for one container after the other.
    testTimeout: 240_000,
    // Images are built, and three Cassandras started.
    hookTimeout: 900_000,
  },
});
