import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Starts Redis and Cassandra when the first suite asks for them, and ends them with the run.
    globalSetup: ['test/support/backends/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
});
