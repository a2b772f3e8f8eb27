import { defineConfig } from 'vitest/config';

/**
 * Unit tests are many small files, two at a time. All others start processes, watch the clock or share backends, and come after them, one at a
 * time.
 */
export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: ['test/unit/**/*.test.ts'], maxWorkers: 2, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: 'service',
          include: ['test/**/*.test.ts'],
          exclude: ['test/unit/**'],
          // Starts Redis and Cassandra when the first suite asks for them, and ends them with the run.
          globalSetup: ['test/support/backends/global-setup.ts'],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
