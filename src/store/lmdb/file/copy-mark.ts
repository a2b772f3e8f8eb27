import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StoreStamp } from '../../store-stamp.ts';
import { flush } from './format.ts';

/** An empty file in a data directory that `backup` has made (src/store/store-stamp.ts). */
const copyMark = 'COPY';

export function markCopy(directory: string): void {
  const mark = join(directory, copyMark);
  writeFileSync(mark, '', { mode: 0o600 });
  flush(mark);
  flush(directory);
}

export function stampOf(directory: string): StoreStamp {
  const mark = join(directory, copyMark);
  return {
    storeId: null,
    isCopy: () => existsSync(mark),
    clear() {
      rmSync(mark, { force: true });
      flush(directory);
    },
  };
}
