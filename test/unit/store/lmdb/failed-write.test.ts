import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import type { Projection } from '../../../../src/domain/event/projection.ts';
import { openLmdb } from '../../../../src/store/lmdb/open.ts';
import { testDir } from '../../../support/running-node.ts';

const ledgerId = '0199dddd-0000-7000-8000-000000000001';

test('a store that is closed while the cause of a failed write is not known yet reports the failure first', async () => {
  const dataDir = testDir();
  const fatal: string[] = [];
  const stores = await openLmdb({ dataDir, now: Date.now, onFatal: ({ message }) => void fatal.push(message) });
  const { promise: commitError, reject } = Promise.withResolvers<never>();
  // As lmdb-js rejects writes: the cause comes later.
  const error = Object.assign(new Error('Commit failed (see commitError for details)'), { commitError });
  const failing: Projection = {
    kind: 'command',
    get command(): never {
      throw error;
    },
  };
  const claim = await stores.ledgers.claim(ledgerId);
  const entry = { seq: 0, prevHash: '', hash: '0'.repeat(64), row: 'a row', projections: [failing] };
  await expect(stores.ledgers.append(claim, [entry])).rejects.toMatchObject({ name: 'OutcomeUnknown' });
  setTimeout(() => reject(new Error('ENOSPC')), 300);
  await stores[Symbol.asyncDispose]();
  expect(fatal).toEqual(['A write to the disk failed: Error: ENOSPC']);
});

test('a process without anything else to do waits for the report of a failed write whose cause never comes', () => {
  const commits = new URL('../../../../src/store/lmdb/commits.ts', import.meta.url);
  const program = `
    import { Commits } from '${commits}';
    const commits = new Commits(({ message }) => console.log(message));
    const error = Object.assign(new Error('Commit failed'), { commitError: new Promise(() => {}) });
    commits.write(() => Promise.reject(error)).catch(() => {});
    await null;
    await commits.reported();
  `;
  const said = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
  expect(said).toBe('A write to the disk failed: Error: Commit failed\n');
});
