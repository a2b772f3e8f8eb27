import { expect, test } from 'vitest';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import type { AccessEvent } from '../../../../src/store/access-log.ts';
import { formatBlock, parseBlock } from '../../../../src/store/lmdb/access/access-block.ts';

const fields = { apiKeyId: null, ledgerId: 'l', method: 'GET', path: '/', responseStatus: 200, requestId: 'r' };
const event: AccessEvent = { id: uuidV7(1, Buffer.alloc(10)), actorId: 'a', ...fields };

test('a block of access events is read as it was written', () => {
  expect(parseBlock('a', formatBlock([event, event]))).toEqual([event, event]);
});

test.each([{ id: 'x' }, { path: 7 }, { ledgerId: {} }, { responseStatus: 'many' }, { method: '\ud800' }])(
  'a block with a field of another type is refused: %j',
  (wrong) => {
    expect(() => parseBlock('a', formatBlock([{ ...event, ...wrong } as AccessEvent]))).toThrow('no access event');
  },
);
