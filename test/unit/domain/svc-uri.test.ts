import { describe, expect, test } from 'vitest';
import { actorUri, namespaceReserved, parseSvcUri } from '../../../src/domain/values/svc-uri.ts';

const ID = '0193a000-0000-7000-8000-00000000000a';

test('the URI of an actor round-trips', () => {
  expect(parseSvcUri(actorUri(ID))).toEqual({ kind: 'actor', actorId: ID });
});

test.each(['entity', 'ledger', 'tlid'] as const)(
  'the namespace svc:%s: is reserved, whatever follows it',
  (namespace) => {
    for (const name of [ID, '', 'x:y'])
      expect(parseSvcUri(`svc:${namespace}:${name}`)).toEqual({ kind: 'reserved', namespace });
    expect(namespaceReserved(namespace)).toMatchObject({ code: 'namespace_reserved', details: { namespace } });
  },
);

describe('every other URI is invalid', () => {
  test.each([
    '',
    'svc',
    'svc:',
    'svc::',
    'svc:actor',
    'svc:actor:',
    `svc:actor:${ID}#key-1`,
    `svc:actor:${ID.toUpperCase()}`,
    `SVC:actor:${ID}`,
    `svc:Actor:${ID}`,
    `svc:ENTITY:${ID}`,
    `svc:actor:${ID} `,
    `svc:actor:${ID}\n`,
    ` svc:actor:${ID}`,
    `svc:actor:actor:${ID}`,
    `svc:person:${ID}`,
    `svc:__proto__:${ID}`,
    `svc%3Aactor%3A${ID}`,
    `urn:svc:actor:${ID}`,
    ID,
    `svc:authority`,
    `svc:entity`,
  ])('%j', (text) => {
    expect(parseSvcUri(text)).toEqual({ kind: 'invalid' });
  });
});
