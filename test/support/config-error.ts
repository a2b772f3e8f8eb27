import { expect } from 'vitest';

/** A ConfigError, which is shown as one sentence and without a stack. */
export function configError(message: RegExp): object {
  return { name: 'ConfigError', message: expect.stringMatching(message) };
}
