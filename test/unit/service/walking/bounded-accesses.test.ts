import { expect, test } from 'vitest';
import { boundedAccesses } from '../../../../src/service/walking/bounded-stores.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { AccessLog } from '../../../../src/store/access-log.ts';

test('a page of an access history costs what its store looked at, not what it shows', async () => {
  const list: AccessLog['list'] = async (_actorId, _page, reading) => {
    reading?.examined(5_000);
    reading?.examined(7);
    return [];
  };
  const walk = unboundedWalk(new AbortController().signal);
  const page = { ledgerId: null, since: 0, offset: 0, limit: 1, descending: false };
  expect(await boundedAccesses(walk, { list } as AccessLog, 'an actor', page)).toEqual([]);
  expect(walk.cost).toMatchObject({ examined: 5_007, chars: 5_007 * 400 });
});
