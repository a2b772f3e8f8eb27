import type { TestProject } from 'vitest/node';
import { openCounter } from './counter.ts';
import { provisionBackends } from './provision.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of the socket that backends are asked for at. */
    backendsSocket: string;
  }
}

/**
 * Of a whole vitest run: the first suite that asks for a backend has it started. A run that requires backends starts
 * them at once: Cassandra takes half a minute, in which other suites can run.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const provision = provisionBackends(process.env);
  const counter = await openCounter(provision);
  project.provide('backendsSocket', counter.path);
  // The suites that need a backend get its error.
  if (process.env.REQUIRE_BACKENDS === '1') void Promise.allSettled([provision.cassandra(), provision.redis()]);
  return async () => {
    await counter[Symbol.asyncDispose]();
    await provision[Symbol.asyncDispose]();
  };
}
