import { beforeEach, describe, expect, it } from 'vitest';
import { bearer, listeningNodeForTests, masterId } from '../../support/listening-node.ts';
import { parts, sendRaw } from '../../support/raw-http.ts';

let appends = 0;
const node = await listeningNodeForTests({
  grpc: false,
  handlers: {
    'HealthService.GetHealth': async () => ({ status: 'ok' }),
    'MasterService.AppendEvent': async () => {
      appends += 1;
      return { seq: 1n };
    },
  },
});
beforeEach(() => {
  appends = 0;
});

const eventsPath = `/v1/traceledger/master/${masterId}/events`;
const rpcPath = '/svc.v1.MasterService/AppendEvent';
const json = 'Content-Type: application/json';
const rest = '{"event_type":"A","payload":{}}';
const connect = `{"uuid":"${masterId}","eventType":"A","payload":"{}"}`;
const ask = (start: string, headers: readonly string[], body = '') => {
  const all = [...headers, `Content-Length: ${body.length}`, 'Connection: close'];
  return sendRaw(node.http.port, `${start} HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n${body}`);
};

describe('a target in absolute form', () => {
  it.each(['http://x/health', 'HTTPS://x:8080/health?a=b', 'http://[::1]:80/v1/health', 'http://x/v1/health/'])(
    '%s is read as its path',
    async (target) => {
      expect(parts(await ask(`GET ${target}`, ['Host: y']))).toEqual({ status: 200, code: undefined });
    },
  );

  it('is served by REST and by Connect', async () => {
    const auth = `Authorization: ${bearer.authorization}`;
    expect((await ask(`POST http://x${eventsPath}`, ['Host: x', auth, json], rest)).slice(9, 12)).toBe('200');
    expect((await ask(`POST http://x${rpcPath}`, ['Host: x', auth, json], connect)).slice(9, 12)).toBe('200');
    expect(appends).toBe(2);
  });

  it.each([
    ['no Host', 'http://x/health', []],
    ['two Hosts', 'http://x/health', ['Host: x', 'Host: x']],
    ['a malformed Host', 'http://x/health', ['Host: a/b@c']],
    ['a name and password', 'http://u:p@x/health', ['Host: x']],
    ['a malformed authority', 'http://a,b/health', ['Host: x']],
  ])('with %s is refused', async (_name, target, headers) => {
    expect(parts(await ask(`GET ${target}`, headers))).toEqual({ status: 400, code: 'invalid_argument' });
  });

  it.each(['http://x', 'http://x?/health', 'http://x//health', 'ftp://x/health', 'http://x/http://x/health'])(
    '%s is an unknown path',
    async (target) => {
      expect(parts(await ask(`GET ${target}`, ['Host: x']))).toEqual({ status: 404, code: 'route_not_found' });
    },
  );
});

describe('an Idempotency-Key', () => {
  const append = (path: string, body: string, ...keys: readonly string[]) => {
    const sent = keys.map((key) => `Idempotency-Key: ${key}`);
    return ask(`POST ${path}`, ['Host: a', `Authorization: ${bearer.authorization}`, json, ...sent], body);
  };

  const transports = [
    ['REST', eventsPath, rest],
    ['Connect', rpcPath, connect],
  ] as const;

  it.each(transports)(
    'that is sent twice over %s is refused by its name, even if both are equal',
    async (_transport, path, body) => {
      for (const keys of ['a b', 'a a', 'a,b c']) {
        const answer = await append(path, body, ...keys.split(' '));
        expect(answer.slice(9, 12)).toBe('400');
        expect(answer).toContain('Idempotency-Key was sent more than once.');
      }
      expect(appends).toBe(0);
    },
  );

  it.each(transports)('with a comma is one key over %s', async (_transport, path, body) => {
    expect((await append(path, body, 'a, b')).slice(9, 12)).toBe('200');
    expect(appends).toBe(1);
  });
});

it('headers that are too many or too long are refused with both bounds', async () => {
  for (const header of ['X: y\r\n'.repeat(150), `X: ${'y'.repeat(20_000)}\r\n`]) {
    const answer = await sendRaw(node.http.port, `GET /health HTTP/1.1\r\nHost: a\r\n${header}\r\n`);
    expect(parts(answer)).toEqual({ status: 431, code: 'invalid_argument' });
    expect(answer).toContain('A request may have 100 headers, of 16384 bytes together.');
  }
});

it.each([
  ['REST', 'DELETE', '/v1/health', ['GET', 'HEAD', 'OPTIONS']],
  ['Connect', 'GET', rpcPath, ['POST', 'OPTIONS']],
])(
  'Allow, message and details name the methods of a path of %s that does not take the method',
  async (_transport, method, path, allow) => {
    const response = await fetch(node.base + path, { method });
    const text = allow.join(', ');
    expect([response.status, response.headers.get('allow')]).toEqual([405, text]);
    expect(await response.json()).toMatchObject({
      error: { code: 'method_not_allowed', message: `This path takes ${text}.`, details: { allow } },
    });
  },
);
