import { describe, expect, test } from 'vitest';
import type { CommandOutcome } from '../../../src/actors/inbox/outcome.ts';
import { PeerUnreachable } from '../../../src/actors/routing/peers.ts';
import type { Command } from '../../../src/domain/ledger/command.ts';
import { append } from '../../support/commands.ts';
import { failure, nodePort, openLedgerDirectory, ownerPort, peersAt, peersTo } from '../../support/peer-ports.ts';
import { freePort, silentPort } from '../../support/raw-http.ts';

describe('a node that does not answer', () => {
  test('refuses the connection: the command has not arrived, and the next one fails at once', async () => {
    const free = await freePort();
    const { ask } = peersTo(free);
    expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
    const began = performance.now();
    expect(await failure(ask(append()))).toMatchObject({ mayHaveArrived: false });
    expect(performance.now() - began).toBeLessThan(100);
  });

  test('is unknown: the command has not arrived', async () => {
    expect(await failure(peersTo(1).ask(append(), 'node-z'))).toMatchObject({ mayHaveArrived: false });
  });

  test('accepts the connection and sends nothing: the command has not arrived', async () => {
    const { ask } = peersTo((await silentPort()).port, { budgetMs: 300 });
    expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
  });

  test('accepts the stream and is silent: the command may have arrived, and later ones wait shorter', async () => {
    const { port } = await nodePort();
    const { ask } = peersTo(port, { budgetMs: 400 });
    const first = failure(ask(append()));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const began = performance.now();
    const second = failure(ask(append()));
    expect(await first).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(await second).toMatchObject({ mayHaveArrived: true });
    expect(performance.now() - began).toBeLessThan(390);
  });

  test('stops while a command runs: the command may have arrived', async () => {
    const arrived = Promise.withResolvers<void>();
    const far = await nodePort({
      carryOut() {
        arrived.resolve();
        return new Promise(() => {});
      },
    });
    const { ask, results } = peersTo(far.port, { budgetMs: 10_000 });
    const outcome = failure(ask(append()));
    await arrived.promise;
    await far.close();
    expect(await outcome).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(await outcome).toBeInstanceOf(PeerUnreachable);
    expect(results).toEqual(['unreachable']);
  });

  test('gets commands again after the pause', async () => {
    const free = await freePort();
    const { ask } = peersTo(free);
    await failure(ask(append()));
    await ownerPort({ port: free });
    await expect
      .poll(() => ask(append()).catch(() => null), { timeout: 6_000, interval: 100 })
      .toMatchObject({ event: { seq: 3 } });
  });

  test('and was silent gets no command before it accepts a stream', async () => {
    const silent = await silentPort();
    const { ask } = peersTo(silent.port);
    expect(await failure(ask(append()))).toMatchObject({ mayHaveArrived: false });
    // Longer than the pause after a failure, and than the bound of a stream that is not accepted.
    for (let asked = 0; asked < 20; asked++) {
      const began = performance.now();
      expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: false });
      expect(performance.now() - began).toBeLessThan(100);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await silent.close();
    const { connections } = await ownerPort({ port: silent.port });
    // The node is found without a command. A failed channel may connect once more before grpc-js drops it.
    await expect.poll(() => connections.size, { timeout: 10_000 }).toBeGreaterThan(0);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await ask(append())).toMatchObject({ event: { seq: 3 } });
  });
});

describe('a busy node', () => {
  const slow = '{"slow":true}';

  /** A node that answers slow commands after `slowMs`, and all others at once. */
  async function busyPort(slowMs: number) {
    const { directory } = await openLedgerDirectory();
    return nodePort({
      async carryOut(command) {
        if (command.kind === 'append_event' && command.payload === slow)
          await new Promise((resolve) => setTimeout(resolve, slowMs));
        return directory.carryOut(command);
      },
    });
  }

  /** Sends commands that are answered at once, until `during` is settled. */
  async function askingOthers(
    ask: (command: Command) => Promise<CommandOutcome>,
    during: Promise<unknown>,
  ): Promise<void> {
    let over = false;
    void during.finally(() => {
      over = true;
    });
    while (!over) {
      await ask(append());
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }

  test('is waited for while it answers other commands', async () => {
    const { ask, results } = peersTo((await busyPort(900)).port, { budgetMs: 300 });
    const outcome = ask(append({ payload: slow }));
    await askingOthers(ask, outcome);
    expect((await outcome).event.payload).toBe(slow);
    expect(results).not.toContain('unreachable');
  });

  test('is waited for while it runs commands of other nodes, and no longer', async () => {
    const began = performance.now();
    const othersUntilMs = 1_600;
    const batchesConfirmed = () => Math.min(performance.now() - began, othersUntilMs);
    const { ask } = peersTo((await nodePort({ batchesConfirmed })).port, { budgetMs: 800 });
    expect(await failure(ask(append()))).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(performance.now() - began).toBeGreaterThan(othersUntilMs + 100);
    expect(performance.now() - began).toBeLessThan(othersUntilMs + 2_000);
  });

  test('is given up when it answers no other commands any more: the command may have arrived', async () => {
    const { ask } = peersTo((await busyPort(60_000)).port, { budgetMs: 300 });
    const began = performance.now();
    const outcome = failure(ask(append({ payload: slow })));
    await askingOthers(ask, new Promise((resolve) => setTimeout(resolve, 500)));
    expect(await outcome).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(performance.now() - began).toBeGreaterThan(500);
    expect(performance.now() - began).toBeLessThan(1_500);
  });

  test('is waited for longer while batches of this node stand still too', async () => {
    const { port } = await nodePort();
    const peers = peersAt(
      { port },
      { ownBatches: () => ({ confirmed: 0, running: 1 }), budgetMs: 1_200, busyPeerBudgetMs: 2_200 },
    );
    const began = performance.now();
    expect(await failure(peers.ask('node-a', append()))).toMatchObject({ mayHaveArrived: true });
    expect(performance.now() - began).toBeGreaterThan(2_100);
  });

  test('is given up after the longest wait of a caller', async () => {
    const { ask, results } = peersTo((await busyPort(60_000)).port, { budgetMs: 300, busyPeerBudgetMs: 700 });
    const outcome = failure(ask(append({ payload: slow })));
    await askingOthers(ask, outcome);
    expect(await outcome).toMatchObject({ name: 'PeerUnreachable', mayHaveArrived: true });
    expect(results.filter((result) => result === 'unreachable')).toHaveLength(1);
  });
});

describe('the connection to a node that is gone', () => {
  test('is closed, also that to a former address; others stay', async () => {
    const old = await ownerPort();
    const now = await nodePort({ carryOut: (command) => old.directory.carryOut(command) });
    const where: { port: number | null } = { port: old.port };
    const peers = peersAt(where);
    await peers.ask('node-a', append());
    peers.forgetGone();
    await peers.ask('node-a', append());
    expect(old.connections.size).toBe(1);
    where.port = now.port;
    await peers.ask('node-a', append());
    peers.forgetGone();
    await expect.poll(() => [old.connections.size, now.connections.size]).toEqual([0, 1]);
    where.port = null;
    peers.forgetGone();
    await expect.poll(() => now.connections.size).toBe(0);
    where.port = old.port;
    expect((await peers.ask('node-a', append())).event.seq).toBe(6);
  });

  test('stays open while a command waits on it', async () => {
    const { directory } = await openLedgerDirectory();
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const far = await nodePort({ carryOut: (command) => held.then(() => directory.carryOut(command)) });
    const where: { port: number | null } = { port: far.port };
    const peers = peersAt(where);
    const outcome = peers.ask('node-a', append());
    await expect.poll(() => far.connections.size).toBe(1);
    where.port = null;
    peers.forgetGone();
    letGo();
    expect((await outcome).event.seq).toBe(3);
    peers.forgetGone();
    await expect.poll(() => far.connections.size).toBe(0);
  });
});
