import { describe, expect, it } from 'vitest';
import { LedgerError } from '../../../src/domain/errors.ts';
import { makeMatcher, parseTemplate } from '../../../src/rpc/endpoints/path-template.ts';
import { restRoutes } from '../../../src/rpc/endpoints/routes.ts';

const match = makeMatcher(restRoutes());

function found(method: string, path: string): { template: string; params: Readonly<Record<string, string>> } {
  const result = match(method, path);
  if (result.kind !== 'found') throw new Error(`${method} ${path}: ${result.kind}`);
  return { template: result.route.template, params: result.params };
}

describe('a template', () => {
  it('is parsed into literals and parameters', () => {
    expect(parseTemplate('/v1/ledgers/{ledger_id}/events')).toEqual([
      { kind: 'literal', text: 'v1' },
      { kind: 'literal', text: 'ledgers' },
      { kind: 'param', name: 'ledger_id' },
      { kind: 'literal', text: 'events' },
    ]);
  });

  it.each(['', '/', 'v1', '/v1/', '/v1//x', '/v1/{Id}', '/v1/{a}:close', '/v1/{a=**}', '/v1/*'])(
    '%j is refused',
    (text) => {
      expect(() => parseTemplate(text)).toThrow('Not a path template');
    },
  );

  it('is refused if another one has the same method and place', () => {
    const route = { httpMethod: 'GET', template: '/x/{a}' };
    expect(() => makeMatcher([route, { httpMethod: 'GET', template: '/x/{b}' }])).toThrow('Two routes');
  });

  it('may name the same parameter differently for another method', () => {
    const other = makeMatcher([
      { httpMethod: 'GET', template: '/x/{a}' },
      { httpMethod: 'PATCH', template: '/x/{b}' },
    ]);
    expect(other('GET', '/x/1')).toMatchObject({ params: { a: '1' } });
    expect(other('PATCH', '/x/1')).toMatchObject({ params: { b: '1' } });
  });
});

describe('a path', () => {
  it('is matched with its parameters by name', () => {
    expect(found('DELETE', '/v1/traceledger/master/m-1/access/l-2')).toEqual({
      template: '/v1/traceledger/master/{uuid}/access/{link_id}',
      params: { uuid: 'm-1', link_id: 'l-2' },
    });
  });

  it('is percent-decoded once, so that a kid keeps its # and an encoded percent sign stays one', () => {
    const kid = 'svc:actor:1#key-2';
    expect(found('PATCH', `/v1/actors/1/keys/${encodeURIComponent(kid)}/prefer`).params).toEqual({
      actor_id: '1',
      kid,
    });
    expect(found('PATCH', '/v1/actors/1/keys/a%2523b/prefer').params.kid).toBe('a%23b');
  });

  it('keeps an encoded slash inside its segment', () => {
    expect(found('GET', '/v1/ledgers/a%2Fevents')).toEqual({
      template: '/v1/ledgers/{ledger_id}',
      params: { ledger_id: 'a/events' },
    });
  });

  it('keeps a plus sign', () => {
    expect(found('GET', '/v1/ledgers/a+b').params.ledger_id).toBe('a+b');
  });

  it('ends before its query', () => {
    expect(found('GET', '/v1/ledgers/7?limit=/x/').params.ledger_id).toBe('7');
    expect(found('GET', '/v1/entities/?limit=1').template).toBe('/v1/entities');
  });

  it('matches a literal before a parameter, for every method', () => {
    expect(found('GET', '/v1/actors/lookup').template).toBe('/v1/actors/lookup');
    expect(found('GET', '/v1/actors/lookups').template).toBe('/v1/actors/{actor_id}');
    expect(match('GET', '/v1/entities/arl-gate')).toEqual({ kind: 'method_not_allowed', allow: ['PATCH'] });
  });

  it('falls back to a parameter if the literal leads nowhere', () => {
    const other = makeMatcher([
      { httpMethod: 'GET', template: '/x/lookup/y' },
      { httpMethod: 'GET', template: '/x/{a}/z' },
    ]);
    expect(other('GET', '/x/lookup/z')).toMatchObject({ kind: 'found', params: { a: 'lookup' } });
  });

  it('drops the parameters of a branch that leads nowhere', () => {
    const other = makeMatcher([
      { httpMethod: 'GET', template: '/x/lookup/{b}/y' },
      { httpMethod: 'GET', template: '/x/{a}/{c}/z' },
    ]);
    expect(other('GET', '/x/lookup/1/z')).toMatchObject({ kind: 'found', params: { a: 'lookup', c: '1' } });
    expect(other('GET', '/x/lookup/1/w')).toEqual({ kind: 'not_found' });
  });

  it('takes HEAD where it takes GET', () => {
    expect(found('HEAD', '/health').template).toBe('/health');
    expect(match('HEAD', '/v1/engagements')).toEqual({ kind: 'method_not_allowed', allow: ['POST'] });
  });

  it.each([
    ['DELETE', '/v1/ledgers', ['GET', 'HEAD', 'POST']],
    ['GET', '/v1/entities/root-ledger', ['POST']],
    ['PUT', '/v1/delegation/organization/', ['GET', 'HEAD', 'PATCH', 'POST']],
    ['get', '/v1/health', ['GET', 'HEAD']],
    ['__proto__', '/v1/health', ['GET', 'HEAD']],
  ])('%s %s is not allowed, and the allowed methods are listed', (method, path, allow) => {
    expect(match(method, path)).toEqual({ kind: 'method_not_allowed', allow });
  });

  it.each([
    '/',
    '',
    '*',
    '//v1/health',
    '/v1//health',
    '/v1/health//',
    '/v1',
    '/V1/health',
    '/v1/Health',
    '/health/x',
    '/v1/ledgers//events',
    '/v1/ledgers/1/events/2',
    '/v1/actors/%25/../x/y/z',
    '/v1/__proto__',
    '/v1/constructor',
    'http://host/v1/health',
  ])('%j is no route', (path) => {
    expect(match('GET', path)).toEqual({ kind: 'not_found' });
  });

  it.each([
    '/v1/ledgers/%',
    '/v1/ledgers/%4',
    '/v1/ledgers/%zz',
    '/v1/ledgers/%FF',
    '/v1/ledgers/%ED%A0%80',
    '/%C0%AF',
  ])('%s is refused as broken', (path) => {
    expect(() => match('GET', path)).toThrow(LedgerError);
    expect(() => match('GET', path)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
  });

  it('of very many segments is no route', () => {
    expect(match('GET', '/v1/ledgers'.repeat(100_000))).toEqual({ kind: 'not_found' });
  });
});
