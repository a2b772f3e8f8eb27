import { afterEach, describe, expect, test, vi } from 'vitest';
import * as browser from '../../../src/client/browser.ts';
import * as node from '../../../src/client/index.ts';

const baseUrl = 'http://ledger.example/at';
const answered = (status: number, body: string | ReadableStream | null, headers = {}) =>
  Promise.resolve(new Response(body, { status, headers: { 'x-request-id': 'r-1', ...headers } }));
const fetching = (fetch: typeof globalThis.fetch) => {
  const spy = vi.fn(fetch);
  vi.stubGlobal('fetch', spy);
  return spy;
};

afterEach(() => vi.unstubAllGlobals());

describe('the client in a browser', () => {
  test('exports what the client in Node exports', () => {
    expect(Object.keys(browser).sort()).toEqual(Object.keys(node).sort());
  });

  test.each([
    [{ baseUrl, grpcUrl: 'http://ledger.example:1' }, 'grpcUrl needs Node'],
    [{ baseUrl, ca: 'PEM' }, 'ca needs Node'],
    [{ baseUrl, connections: 3 }, 'connections needs Node'],
    [{ baseUrl, transport: 'grpc' as const }, 'gRPC needs Node'],
  ])('refuses options that need Node: %s', (options, message) => {
    expect(() => browser.createClient(options)).toThrow(TypeError);
    expect(() => browser.createClient(options)).toThrow(message);
  });

  test('has no append stream', () => {
    expect(() => browser.createClient({ baseUrl }).appendStream()).toThrow(TypeError);
  });

  test('sends by fetch, without cookies, and follows no redirect', async () => {
    const spy = fetching(() => answered(200, '{"status":"ok","version":"1","phase":1}'));
    await browser
      .createClient({ baseUrl })
      .getHealth()
      .catch(() => {});
    expect(spy.mock.calls[0]?.[0]).toBe('http://ledger.example/at/v1/health');
    expect(spy.mock.calls[0]?.[1]).toMatchObject({ method: 'GET', credentials: 'omit', redirect: 'manual' });
  });

  test('gives the status and the code of a refusal', async () => {
    const body = '{"error":{"code":"not_found","message":"There is no such ledger.","request_id":"r-2"}}';
    fetching(() => answered(404, body));
    const error = await browser
      .createClient({ baseUrl, apiKey: 'k' })
      .getLedger({ ledgerId: 'x' })
      .catch((e) => e);
    expect(error).toMatchObject({ code: 'not_found', status: 404, grpcStatus: null, requestId: 'r-2' });
  });

  test('calls a failed fetch a lost connection, and not a wrong request', async () => {
    fetching(() => Promise.reject(new TypeError('Failed to fetch')));
    const client = browser.createClient({ baseUrl, attemptsMax: 1 });
    expect(await client.getHealth().catch((e) => e)).toMatchObject({ code: 'connection_lost', status: null });
  });

  test('rejects with the reason of an aborted signal', async () => {
    fetching(
      (_, init) =>
        new Promise((_resolve, reject) => {
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
        }),
    );
    const reason = new Error('enough');
    const controller = new AbortController();
    const call = browser.createClient({ baseUrl }).getHealth({}, { signal: controller.signal });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  test('ends an answer that is far too large', async () => {
    let cancelled = false;
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(16 * 1024 * 1024).fill(0x20)),
        cancel: () => {
          cancelled = true;
        },
      });
    fetching(() => answered(200, endless()));
    const error = await browser
      .createClient({ baseUrl, attemptsMax: 1 })
      .getHealth()
      .catch((e) => e);
    expect(error).toMatchObject({ code: 'invalid_answer', status: 200 });
    expect(cancelled).toBe(true);
  });

  test('calls a redirect an answer that is not one of this API', async () => {
    fetching(() => Promise.resolve(Response.error()));
    const error = await browser
      .createClient({ baseUrl, attemptsMax: 1 })
      .getHealth()
      .catch((e) => e);
    expect(error).toMatchObject({ code: 'invalid_answer', status: 302 });
  });

  test('yields the lines of the demonstration', async () => {
    fetching(() => answered(200, 'one\ntwo\n'));
    expect(await Array.fromAsync(browser.createClient({ baseUrl }).runSandbox())).toEqual(['one', 'two']);
  });
});
