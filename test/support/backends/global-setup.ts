import type { TestProject } from 'vitest/node';
import { openCounter } from './counter.ts';
import { provisionBackends } from './provision.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of the socket that backends are asked for at. */
    backendsSocket: string;
  }
}

/** Of a whole vitest run: starts nothing but a socket; the first suite that asks for a backend has it started. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const provision = provisionBackends(process.env);
  const counter = await openCounter(provision);
  project.provide('backendsSocket', counter.path);
  return async () => {
    await counter[Symbol.asyncDispose]();
    await provision[Symbol.asyncDispose]();
  };
}
