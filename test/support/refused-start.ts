import { vi } from 'vitest';
import { refuse } from '../../src/cli/refuse.ts';

/** What a start that failed with this error says on standard error, and the code that it ends with. */
export function refused(error: unknown): { readonly said: string; readonly code: number } {
  let said = '';
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((line) => {
    said += line;
    return true;
  });
  const code = refuse(error);
  write.mockRestore();
  return { said, code };
}
