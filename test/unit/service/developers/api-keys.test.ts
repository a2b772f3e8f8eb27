import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { apiKeyCollection } from '../../../../src/service/developers/api-key-record.ts';
import { developerService } from '../../../../src/service/developers/developers.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import { supplier } from '../../../support/commands.ts';
import { MemoryRecordStore } from '../../../support/memory-store/record-store.ts';

test('calls that run at once do not make more than 1,000 API keys of an actor', async () => {
  const records = new MemoryRecordStore();
  const keys = apiKeyCollection(records);
  const key = { actorId: supplier, environment: 'sandbox', region: null, prefix: 'p', name: 'n' } as const;
  for (let at = 0; at < 995; at++)
    await keys.create({ ...key, hash: `h${at}`, keyId: `k${at}`, createdAt: 'then', revokedAt: null });
  const { createApiKey } = developerService(...([records, {}, {}] as unknown as Parameters<typeof developerService>));
  const call = () =>
    ({
      caller: { actorId: supplier, world: 'sandbox' },
      walk: unboundedWalk(),
      now: 0,
      newId: () => uuidV7(0, randomBytes(10)),
      randomBytes,
    }) as unknown as Call;
  const request = { name: 'another' } as Parameters<typeof createApiKey>[0];
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => createApiKey(request, call())));
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
});
