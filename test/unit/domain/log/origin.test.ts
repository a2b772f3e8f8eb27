import { expect, test } from 'vitest';
import { isServiceName, originOf, parseOrigin } from '../../../../src/domain/log/origin.ts';
import { logVectors } from '../../../support/log-vectors.ts';

const id = '0193a000-0000-7000-8000-000000000001';
const serviceName = 'ledger.example/v1';

test.each(logVectors.origins.good)('a service may have the name %j', (name) => {
  expect(isServiceName(name)).toBe(true);
  const origin = originOf({ serviceName: name, kind: 'master', id });
  expect(parseOrigin(origin)).toEqual({ serviceName: name, kind: 'master', id });
});

test.each(logVectors.origins.bad)('no service has the name %j', (name) => {
  expect(isServiceName(name)).toBe(false);
  expect(() => originOf({ serviceName: name, kind: 'ledger', id })).toThrow(RangeError);
  expect(parseOrigin(`${name}/ledgers/${id}`)).toBeNull();
});

test('the origins of the vectors are those of their ledger and masters', () => {
  expect(originOf({ serviceName, kind: 'ledger', id })).toBe(logVectors.ledger.origin);
  expect(parseOrigin(logVectors.ledger.origin)).toEqual({ serviceName, kind: 'ledger', id });
  for (const [at, last] of ['aa', 'bb'].entries()) {
    const master = { serviceName, kind: 'master', id: `0193a000-0000-7000-8000-0000000000${last}` } as const;
    const text = logVectors.masters[at]?.origin ?? '';
    expect(originOf(master)).toBe(text);
    expect(parseOrigin(text)).toEqual(master);
  }
});

const origin = `${serviceName}/ledgers/${id}`;
test.each([
  '',
  serviceName,
  `${serviceName}/ledgers`,
  `${serviceName}/ledgers/`,
  `/ledgers/${id}`,
  `ledgers/${id}`,
  `${serviceName}/log`,
  `${serviceName}/actors/${id}`,
  origin.replace('ledgers', 'Ledgers'),
  origin.replace('ledgers', 'ledger'),
  origin.replace('a000', 'A000'),
  origin.replaceAll('-', ''),
  origin.replace(id, `{${id}}`),
  `${origin}/`,
  `${origin}\n`,
  ` ${origin}`,
  `${origin}/x`,
  origin.replace('/ledgers', '//ledgers'),
  `https://${origin}`,
])('no log has the origin %j', (text) => {
  expect(parseOrigin(text)).toBeNull();
});

test('an origin is not made of an id that is no UUID in lower case', () => {
  for (const wrong of ['', id.toUpperCase(), id.replaceAll('-', ''), `${id} `, '..'])
    expect(() => originOf({ serviceName, kind: 'ledger', id: wrong })).toThrow(RangeError);
});
