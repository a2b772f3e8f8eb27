import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { nodeWithMaster } from '../support/node-for-tests.ts';
import { append, eventsOf, signedBy } from '../support/parties.ts';
import { done, type Fields, rest } from '../support/parties-rest.ts';

const { node, base, order, master } = await nodeWithMaster();

/** The bytes of an append, whole. */
function bytesOf(n: number): Buffer {
  const payload = { n };
  const body = JSON.stringify({ event_type: 'HUNG', payload });
  const headers = {
    ...signedBy(order.buyer, 'HUNG', order.ledgerId, { ...payload, ...master.injected }),
    host: 'localhost',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'idempotency-key': `hung-${n}`,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from(
    `POST /v1/traceledger/master/${master.uuid}/events HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`,
  );
}

const retry = (n: number) =>
  append(master, order.buyer, 'HUNG', { n }, { headers: { 'idempotency-key': `hung-${n}` } });

test('a caller that hangs up at any byte leaves one event or none, and its retry makes it one', async () => {
  const { port } = new URL(base);
  const whole = bytesOf(0).length;
  const cuts = Array.from({ length: 40 }, (_, n) => (n < 20 ? Math.floor((n / 20) * whole) : bytesOf(n).length));
  await Promise.all(
    cuts.map(async (cut, n) => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => {});
      await new Promise((resolve) => socket.once('connect', resolve));
      await new Promise((resolve) => socket.write(bytesOf(n).subarray(0, cut), resolve));
      if (n % 2 === 0) await delay(n % 7);
      if (n % 3 === 0) socket.resetAndDestroy();
      else socket.destroy();
    }),
  );
  for (const [n] of cuts.entries()) {
    await expect.poll(async () => (await retry(n)).status, { timeout: 5_000 }).toBe(200);
  }
  const events = (await eventsOf(base, order.supplier, order.ledgerId, '&verify=signatures')).filter(
    (event) => event.event_type === 'HUNG',
  );
  expect(events.map((event) => (event.payload as Fields).n as number).toSorted((a, b) => a - b)).toEqual(
    cuts.map((_, n) => n),
  );
});

test('callers that stall within a call delay nobody else', async () => {
  const { port } = new URL(base);
  const sockets = Array.from({ length: 50 }, (_, n) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    const bytes = bytesOf(1_000 + n);
    socket.write(bytes.subarray(0, bytes.length - 3));
    return socket;
  });
  await delay(50);
  const begun = performance.now();
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => append(master, order.buyer, 'QUICK', { n })));
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(performance.now() - begun).toBeLessThan(5_000);
  for (const socket of sockets) socket.destroy();
  const events = await eventsOf(base, order.buyer, order.ledgerId);
  expect(events.filter((event) => ((event.payload as Fields).n as number) >= 1_000)).toEqual([]);
});

test('the key of an abandoned creating call returns its one result', async () => {
  const names = Array.from({ length: 20 }, (_, n) => `key ${n}`);
  await Promise.all(
    names.map(async (name, n) => {
      const controller = new AbortController();
      const call = fetch(`${base}/v1/developer/keys`, {
        method: 'POST',
        signal: controller.signal,
        headers: { ...order.buyer.bearer, 'content-type': 'application/json', 'idempotency-key': name },
        body: JSON.stringify({ name }),
      }).catch(() => null);
      await delay(n / 4);
      controller.abort();
      await call;
    }),
  );
  const keys: string[] = [];
  for (const name of names) {
    let answer = await rest(base, 'POST', '/v1/developer/keys', {
      headers: { ...order.buyer.bearer, 'idempotency-key': name },
      body: { name },
    });
    for (let tries = 0; answer.code === 'idempotency_in_progress' && tries < 60; tries += 1) {
      await delay(250);
      answer = await rest(base, 'POST', '/v1/developer/keys', {
        headers: { ...order.buyer.bearer, 'idempotency-key': name },
        body: { name },
      });
    }
    keys.push(answer.text('api_key'));
  }
  const listed = (await done(base, 'GET', '/v1/developer/me', order.buyer)).rows('keys');
  expect(
    listed
      .filter((key) => String(key.name).startsWith('key '))
      .map((key) => key.name)
      .toSorted(),
  ).toEqual(names.toSorted());
  for (const key of keys) {
    expect((await rest(base, 'GET', '/v1/developer/me', { headers: { authorization: `Bearer ${key}` } })).status).toBe(
      200,
    );
  }
});

test('the log contains none of the secrets', () => {
  const log = node.lines.join('\n');
  expect(log.length).toBeGreaterThan(1_000);
  for (const secret of [order.buyer.apiKey, order.supplier.apiKey]) expect(log).not.toContain(secret.slice(18));
  expect(log).not.toContain('svc_sk_live_eu_');
});
