import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { describeOn } from '../support/backends/for-tests.ts';
import { compileCache } from '../support/compile-cache.ts';
import { startNpmScript } from '../support/npm-script.ts';
import { ownBackends } from './own-backends.ts';

/** Cassandra starts slowly on a busy machine. */
const startMaxMs = 180_000;

async function isListening(address: string): Promise<boolean> {
  const [host = '', port] = address.split(':');
  const socket = connect(Number(port), host);
  try {
    return await new Promise((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
  } finally {
    socket.destroy();
  }
}

describeOn('npm run cluster:local', 'Cassandra and Redis of its own', await ownBackends(), () => {
  test.each([
    ['Ctrl-C', 'interrupt'],
    ['SIGTERM to npm', 'terminate'],
  ] as const)(
    'starts everything, prints the addresses, and stops everything on %s',
    {
      timeout: startMaxMs + 60_000,
    },
    async (_name, end) => {
      const dir = mkdtempSync(join(tmpdir(), 'lts-cluster-command-'));
      onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
      const { PATH, HOME } = process.env;
      await using cluster = startNpmScript('cluster:local', {
        ...{ PATH, HOME, TMPDIR: dir, PORT: '0', GRPC_PORT: '0' },
        ...compileCache,
      });
      await expect.poll(cluster.said, { timeout: startMaxMs, interval: 500 }).toMatch(/stop {6}Ctrl-C/);
      const printed = (line: RegExp) => {
        const [, value] = line.exec(cluster.said()) ?? [];
        if (value === undefined) throw new Error(`${line} is not printed: ${cluster.said()}`);
        return value;
      };
      const base = printed(/^ {2}REST +(http:\S+)\/v1$/m);
      expect((await (await fetch(`${base}/v1/sandbox/run`)).text()).trimEnd()).toMatch(/ passed, 0 failed$/);
      const nodes = [...cluster.said().matchAll(/^ {2}(\S+) +(http:\S+)\/v1 +gRPC (\S+) +internal (\S+) +pid \d+$/gm)];
      expect(nodes).toHaveLength(3);
      for (const [, , own, , internal] of nodes) {
        expect((await fetch(`${own}/health`)).status).toBe(200);
        expect((await fetch(String(internal))).status).toBe(200);
      }
      const addresses = [
        new URL(base).host,
        printed(/^ {2}gRPC +(\S+)$/m),
        ...nodes.flatMap(([, , own, grpc, internal]) => [
          new URL(String(own)).host,
          String(grpc),
          new URL(String(internal)).host,
        ]),
        new URL(printed(/^ {2}Redis +(\S+)$/m)).host,
        printed(/^ {2}Cassandra +(\S+)$/m),
      ];
      expect(await Promise.all(addresses.map(isListening))).toEqual(addresses.map(() => true));

      await cluster[end]();
      // npm may end before its child process.
      await expect.poll(() => readdirSync(dir), { timeout: 30_000 }).toEqual([]);
      expect(await Promise.all(addresses.map(isListening))).toEqual(addresses.map(() => false));
    },
  );
});
