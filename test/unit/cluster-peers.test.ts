import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { GrpcPeers } from '../../cluster/peers/grpc-peers.ts';
import { peerServer } from '../../cluster/peers/peer-service.ts';
import { type PeerSecurity, type PeerTls, serverCredentials } from '../../cluster/peers/security.ts';
import type { Outcome } from '../../src/actors/outcome.ts';
import { NotOwner, PeerUnreachable } from '../../src/actors/peers.ts';
import type { Command } from '../../src/domain/command.ts';
import { LedgerError } from '../../src/domain/errors.ts';
import { createMetrics } from '../../src/metrics.ts';
import { openOpsDoor } from '../../src/rpc/ops-door.ts';
import { append, createMaster, mark, openLedger, stranger } from '../support/commands.ts';
import { rig } from '../support/world.ts';

const secret: PeerSecurity = { tls: null, secret: 'a secret of all the nodes' };
const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

/** A node's internal port, with whatever carries commands out. */
async function port(carryOut: (command: Command) => Promise<Outcome>, security = secret) {
  const server = peerServer({ self: 'node-a', security, carryOut });
  const injector = server.createConnectionInjector(serverCredentials(security));
  /** Of other nodes, open now. */
  const connections = new Set<Socket>();
  const door = await openOpsDoor(
    {
      metrics: createMetrics(),
      readiness: async () => ({ ready: true }),
      takeConnection: (socket) => {
        connections.add(socket);
        socket.on('close', () => connections.delete(socket));
        injector.injectConnection(socket);
      },
    },
    '127.0.0.1',
    0,
  );
  const close = async () => {
    server.forceShutdown();
    await door.close(0);
  };
  cleanups.push(close);
  return { port: door.port, close, connections };
}

function peersTo(portNumber: number, security = secret, budgetMs = 1_000, patienceMs = 10_000) {
  const results: string[] = [];
  const peers = new GrpcPeers({
    security,
    addressOf: (node) => (node === 'node-a' ? `127.0.0.1:${portNumber}` : null),
    monotonicMs: () => performance.now(),
    meter: { forwarded: (result) => void results.push(result) },
    budgetMs,
    patienceMs,
  });
  cleanups.push(() => peers[Symbol.asyncDispose]());
  return { ask: (command: Command, node = 'node-a') => peers.ask(node, 0, command), results };
}

/** An open ledger's directory, for the far end. */
async function ledger() {
  const world = rig();
  const directory = world.directory();
  await directory.submit(openLedger());
  await directory.submit(createMaster());
  return { ...world, directory };
}

const failure = (outcome: Promise<unknown>) =>
  outcome.then(
    () => 'carried out',
    (error: unknown) => error,
  );

describe('a command that crosses to another node', () => {
  test('comes back as the very event that was written', async () => {
    const { directory, log } = await ledger();
    const far = await port((command) => directory.carryOut(command));
    const { ask, results } = peersTo(far.port);
    const command = append({ payload: '{"text":"\\u2028 é \\"quoted\\""}', marks: [mark('k')] });
    const outcome = await ask(command);
    expect(outcome).toEqual({ event: (await log()).at(-1), replayed: false });
    expect(outcome.event.payload).toBe(command.payload);
    expect((await ask(command)).replayed).toBe(true);
    expect(results).toEqual(['answered', 'answered']);
  });

  test('keeps its refusal: code, message and details', async () => {
    const { directory } = await ledger();
    const far = await port((command) => directory.carryOut(command));
    const { ask } = peersTo(far.port);
    const here = await failure(directory.submit(append({ actorId: stranger })));
    expect(await failure(ask(append({ actorId: stranger })))).toEqual(here);
    const closed = await port(async () => {
      throw new LedgerError('signing_key_revoked', 'The signing key is revoked.', { revoked_at: 'x', deep: [1] });
    });
    const there = await failure(peersTo(closed.port).ask(append()));
    expect(there).toMatchObject({ code: 'signing_key_revoked', details: { revoked_at: 'x', deep: [1] } });
  });

  test('is told who owns its shard', async () => {
    const owners = ['node-b', null];
    const far = await port(async () => {
      throw new NotOwner(owners.shift() ?? null);
    });
    const { ask, results } = peersTo(far.port);
    expect(await failure(ask(append()))).toMatchObject({ name: 'NotOwner', owner: 'node-b' });
    expect(await failure(ask(append()))).toMatchObject({ name: 'NotOwner', owner: null });
    expect(results).toEqual(['not_owner', 'not_owner']);
  });

  test('says nothing of what went wrong inside', async () => {
    const far = await port(async () => {
      throw new Error('password of the database');
    });
    const error = await failure(peersTo(far.port).ask(append()));
    expect(error).toMatchObject({ code: 'internal' });
    expect(String((error as Error).message)).not.toMatch(/password/);
  });

  test('stays behind those sent before it, however many', async () => {
    const { directory, log } = await ledger();
    const arrived: string[] = [];
    const far = await port((command) => {
      if (command.kind === 'append_event') arrived.push(command.payload);
      return directory.carryOut(command);
    });
    const { ask } = peersTo(far.port, secret, 15_000);
    const wanted = Array.from({ length: 2_000 }, (_, n) => `{"n":${n}}`);
    const lane = (index: number) => ({ id: 'l', index, previous: index === 0 ? null : index - 1 });
    await Promise.all(wanted.map((payload, index) => ask(append({ payload, lane: lane(index) }))));
    expect(arrived).toEqual(wanted);
    expect((await log()).slice(3).map(({ payload }) => payload)).toEqual(wanted);
  });

  test('may be as large as events are', async () => {
    const { directory } = await ledger();
    const far = await port((command) => directory.carryOut(command));
    const payload = JSON.stringify({ text: '"'.repeat(300_000) });
    const { ask } = peersTo(far.port, secret, 15_000);
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => ask(append({ payload }))));
    expect(outcomes.every(({ event }) => event.payload === payload)).toBe(true);
  });
});

describe('a node that does not answer', () => {
  test('refuses the connection: certain not to have arrived, and the next one is told at once', async () => {
    const free = await freePort();
    const { ask } = peersTo(free);
    expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
    const began = performance.now();
    expect(await failure(ask(append()))).toMatchObject({ mayHaveArrived: false });
    expect(performance.now() - began).toBeLessThan(100);
  });

  test('is not known', async () => {
    expect(await failure(peersTo(1).ask(append(), 'node-z'))).toMatchObject({ mayHaveArrived: false });
  });

  test('takes the connection and says nothing: certain not to have arrived', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    cleanups.push(() => silent.close());
    await new Promise((resolve) => silent.once('listening', resolve));
    const address = silent.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const { ask } = peersTo(address.port, secret, 300);
    expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
  });

  test('took the command and is silent: it may have arrived, and those behind it need not wait as long', async () => {
    const far = await port(() => new Promise(() => {}));
    const { ask } = peersTo(far.port, secret, 400);
    const first = failure(ask(append()));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const began = performance.now();
    const second = failure(ask(append()));
    expect(await first).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(await second).toMatchObject({ mayHaveArrived: true });
    expect(performance.now() - began).toBeLessThan(390);
  });

  test('ends in the middle: what was sent may have arrived', async () => {
    let arrived = () => {};
    const taken = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const far = await port(() => {
      arrived();
      return new Promise(() => {});
    });
    const { ask, results } = peersTo(far.port, secret, 10_000);
    const outcome = failure(ask(append()));
    await taken;
    await far.close();
    expect(await outcome).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(await outcome).toBeInstanceOf(PeerUnreachable);
    expect(results).toEqual(['unreachable']);
  });

  test('is asked again once it has rested', async () => {
    const free = await freePort();
    const { ask } = peersTo(free);
    await failure(ask(append()));
    await openAt(free);
    expect(await untilCarriedOut(ask)).toMatchObject({ event: { seq: 3 } });
  });

  test('and was silent is not waited for again before it takes a stream', async () => {
    const taken: Socket[] = [];
    const silent = createServer((socket) => void taken.push(socket)).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const address = silent.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const { ask } = peersTo(address.port, secret, 1_000);
    expect(await failure(ask(append()))).toMatchObject({ mayHaveArrived: false });
    // Longer than it is left alone, and than a stream that is not taken is waited for.
    for (let asked = 0; asked < 20; asked++) {
      const began = performance.now();
      expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
      expect(performance.now() - began).toBeLessThan(100);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    silent.close();
    for (const socket of taken) socket.destroy();
    const { accepted } = await openAt(address.port);
    // It is found without anything being asked.
    await accepted;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await ask(append())).toMatchObject({ event: { seq: 3 } });
  });

  /** A node at a port that was somebody else's until now. */
  async function openAt(portNumber: number) {
    const { directory } = await ledger();
    const { promise: accepted, resolve: accept } = Promise.withResolvers<void>();
    const server = peerServer({ self: 'node-a', security: secret, carryOut: (command) => directory.carryOut(command) });
    const injector = server.createConnectionInjector(serverCredentials(secret));
    const door = await openOpsDoor(
      {
        metrics: createMetrics(),
        readiness: async () => ({ ready: true }),
        takeConnection: (socket) => {
          injector.injectConnection(socket);
          accept();
        },
      },
      '127.0.0.1',
      portNumber,
    );
    cleanups.push(
      () => door.close(0),
      () => server.forceShutdown(),
    );
    return { accepted };
  }

  async function untilCarriedOut(ask: (command: Command) => Promise<Outcome>): Promise<unknown> {
    let outcome: unknown;
    for (let tries = 0; tries < 60 && !isOutcome(outcome); tries++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      outcome = await ask(append()).catch((error: unknown) => error);
    }
    return outcome;
  }
});

describe('a node that has much to do', () => {
  const slow = '{"slow":true}';

  /** Answers what is not slow at once, and what is slow after so long. */
  async function busyPort(slowMs: number) {
    const { directory } = await ledger();
    return port(async (command) => {
      if (command.kind === 'append_event' && command.payload === slow)
        await new Promise((resolve) => setTimeout(resolve, slowMs));
      return directory.carryOut(command);
    });
  }

  /** Asks for something that is answered at once, again and again, until `during` is over. */
  async function askingOthers(ask: (command: Command) => Promise<Outcome>, during: Promise<unknown>): Promise<void> {
    let over = false;
    void during.finally(() => {
      over = true;
    });
    while (!over) {
      await ask(append());
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }

  test('is waited for as long as it answers others', async () => {
    const { ask, results } = peersTo((await busyPort(900)).port, secret, 300);
    const outcome = ask(append({ payload: slow }));
    await askingOthers(ask, outcome);
    expect((await outcome).event.payload).toBe(slow);
    expect(results).not.toContain('unreachable');
  });

  test('is waited for no longer than it answers others: the command may have arrived', async () => {
    const { ask } = peersTo((await busyPort(60_000)).port, secret, 300);
    const began = performance.now();
    const outcome = failure(ask(append({ payload: slow })));
    await askingOthers(ask, new Promise((resolve) => setTimeout(resolve, 500)));
    expect(await outcome).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(performance.now() - began).toBeGreaterThan(500);
    expect(performance.now() - began).toBeLessThan(1_500);
  });

  test('is not waited for for ever', async () => {
    const { ask, results } = peersTo((await busyPort(60_000)).port, secret, 300, 700);
    const outcome = failure(ask(append({ payload: slow })));
    await askingOthers(ask, outcome);
    expect(await outcome).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(results.filter((result) => result === 'unreachable')).toHaveLength(1);
  });
});

describe('a node that is gone', () => {
  /** Peers with one node, which is at a port, or at none. */
  function peersAt(where: { port: number | null }): GrpcPeers {
    const peers = new GrpcPeers({
      security: secret,
      addressOf: () => (where.port === null ? null : `127.0.0.1:${where.port}`),
      monotonicMs: () => performance.now(),
      meter: { forwarded: () => {} },
    });
    cleanups.push(() => peers[Symbol.asyncDispose]());
    return peers;
  }

  test('is hung up on, and so is where it was before; one that is there is not', async () => {
    const { directory } = await ledger();
    const [old, now] = [await port((one) => directory.carryOut(one)), await port((one) => directory.carryOut(one))];
    const where: { port: number | null } = { port: old.port };
    const peers = peersAt(where);
    await peers.ask('node-a', 0, append());
    peers.forgetGone();
    await peers.ask('node-a', 0, append());
    expect(old.connections.size).toBe(1);
    where.port = now.port;
    await peers.ask('node-a', 0, append());
    peers.forgetGone();
    await expect.poll(() => [old.connections.size, now.connections.size]).toEqual([0, 1]);
    where.port = null;
    peers.forgetGone();
    await expect.poll(() => now.connections.size).toBe(0);
    where.port = old.port;
    expect((await peers.ask('node-a', 0, append())).event.seq).toBe(6);
  });

  test('is not hung up on while a command waits for it', async () => {
    const { directory } = await ledger();
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const far = await port(async (command) => {
      await held;
      return directory.carryOut(command);
    });
    const where: { port: number | null } = { port: far.port };
    const peers = peersAt(where);
    const outcome = peers.ask('node-a', 0, append());
    await expect.poll(() => far.connections.size).toBe(1);
    where.port = null;
    peers.forgetGone();
    letGo();
    expect((await outcome).event.seq).toBe(3);
    peers.forgetGone();
    await expect.poll(() => far.connections.size).toBe(0);
  });
});

describe('who is no node of the cluster', () => {
  test.each([
    ['another secret', 'a secret of someone else'],
    ['no secret', null],
  ])('%s: nothing is carried out', async (_, wrong) => {
    const carried: Command[] = [];
    const far = await port((command) => {
      carried.push(command);
      return new Promise(() => {});
    });
    const { ask } = peersTo(far.port, { tls: null, secret: wrong });
    expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
    expect(carried).toEqual([]);
  });

  const directory = mkdtempSync(join(tmpdir(), 'lts-peers-'));
  afterAll(() => rmSync(directory, { recursive: true }));

  test('with certificates: of the same authority it is served; of another, or with none, it is not', async () => {
    const [ours, theirs] = [authority(directory, 'ours'), authority(directory, 'theirs')];
    const node = { tls: ours('node-a'), secret: null };
    const { directory: ledgers, log } = await ledger();
    const far = await port((command) => ledgers.carryOut(command), node);
    expect((await peersTo(far.port, { tls: ours('node-b'), secret: null }).ask(append())).event.seq).toBe(3);
    // Believes our authority, and shows a certificate of another one.
    const forged = { ...theirs('node-c'), ca: node.tls.ca };
    for (const tls of [forged, theirs('node-c'), null])
      expect(await failure(peersTo(far.port, { tls, secret: 'guessed by somebody' }).ask(append()))).toMatchObject({
        name: 'PeerUnreachable',
      });
    expect(await log()).toHaveLength(4);
  });

  test('metrics and readiness are served beside it, on the same port', async () => {
    const far = await port(() => new Promise(() => {}));
    const base = `http://127.0.0.1:${far.port}`;
    expect(await (await fetch(`${base}/health/ready`)).json()).toEqual({ status: 'ready' });
    expect(await (await fetch(`${base}/metrics`)).text()).toMatch(/process_cpu/);
    expect((await fetch(`${base}/metrics`, { method: 'POST', body: 'x' })).status).toBe(405);
    // A byte at a time: what is no peer is HTTP/1.
    const socket = connect(far.port, '127.0.0.1');
    let answer = '';
    socket.on('data', (data) => {
      answer += data.toString();
    });
    for (const letter of 'GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n') {
      socket.write(letter);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await new Promise((resolve) => socket.once('close', resolve));
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
  });
});

function isOutcome(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'event' in value;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** A certificate authority of a test, which makes nodes' certificates. */
function authority(directory: string, name: string): (node: string) => PeerTls {
  const at = (file: string) => join(directory, `${name}-${file}`);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.pem'),
    '-days',
    '1',
    '-subj',
    `/CN=${name}`,
  );
  return (node) => {
    const file = (end: string) => at(`${node}.${end}`);
    openssl('req', ...newKey, '-keyout', file('key'), '-out', file('csr'), '-subj', `/CN=${node}`);
    openssl(
      'x509',
      '-req',
      '-in',
      file('csr'),
      '-CA',
      at('ca.pem'),
      '-CAkey',
      at('ca.key'),
      '-CAcreateserial',
      '-out',
      file('pem'),
      '-days',
      '1',
    );
    return { ca: readFileSync(at('ca.pem')), cert: readFileSync(file('pem')), key: readFileSync(file('key')) };
  };
}
