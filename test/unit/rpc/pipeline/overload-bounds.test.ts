import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { readClusterConfig } from '../../../../cluster/config.ts';
import { clusterSettings } from '../../../../cluster/settings.ts';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { readConfig } from '../../../../src/node/config.ts';
import { nodeSettings } from '../../../../src/node/settings.ts';
import { changeMutex } from '../../../../src/service/records/change-mutex.ts';
import { VerifyingThreads } from '../../../../src/service/signatures/verifying-threads.ts';
import { Circuit } from '../../../../src/store/cassandra/session/circuit.ts';
import { writeMutex } from '../../../../src/store/cassandra/session/write-mutex.ts';
import { ManualClock } from '../../../support/clock.ts';
import { append, createMaster, openLedger } from '../../../support/commands.ts';
import { streamWorld } from '../../../support/peer-stream-world.ts';
import { rig, startMs } from '../../../support/world.ts';

afterEach(() => void vi.useRealTimers());

/** The bound that a call is refused by, or `carried out`. */
async function boundOf(outcome: Promise<unknown>): Promise<unknown> {
  try {
    await outcome;
    return 'carried out';
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'overloaded') throw error;
    expect(error.message).toMatch(/nothing was (written|sent to it), retry in a moment\.$/);
    return error.details.bound;
  }
}

describe('an overloaded call names the bound', () => {
  test('of the commands that wait for a ledger, and of their bytes', async () => {
    for (const [bound, limits] of [
      ['LEDGER_QUEUE_MAX', { commandsMax: 2, bytesMax: 1_000_000 }],
      ['LEDGER_QUEUE_MIB', { commandsMax: 1_000, bytesMax: 2_000 }],
    ] as const) {
      const directory = rig().directory({ queueLimits: limits });
      await directory.submit(openLedger());
      await directory.submit(createMaster());
      const outcomes = await Promise.all(Array.from({ length: 20 }, () => boundOf(directory.submit(append()))));
      expect(new Set(outcomes)).toEqual(new Set(['carried out', bound]));
    }
  });

  test('of the signatures that wait', async () => {
    await using threads = new VerifyingThreads({ count: 1, waitingMax: 2 });
    const { publicKey } = generateKeyPairSync('ed25519');
    const verify = () => boundOf(threads.verify(new Uint8Array(32), new Uint8Array(64), publicKey));
    const outcomes = await Promise.all([verify(), verify(), verify()]);
    expect(outcomes).toEqual(['carried out', 'carried out', 'SIGNATURE_QUEUE_MAX']);
  });

  test('of the requests to Cassandra that are under way', async () => {
    const circuit = new Circuit(
      () => 'answered',
      () => 1,
      2,
    );
    const ends = Promise.withResolvers<void>();
    const running = [1, 2].map(() => circuit.run(1_000, () => ends.promise));
    expect(await boundOf(circuit.run(1_000, async () => {}))).toBe('CASSANDRA_REQUESTS_MAX');
    ends.resolve();
    await Promise.all(running);
    expect(await boundOf(circuit.run(1_000, async () => {}))).toBe('carried out');
  });

  test('of the writes that wait for one object', async () => {
    const mutex = writeMutex(1);
    const ends = Promise.withResolvers<void>();
    const running = mutex.take('a', 'write', () => ends.promise);
    const waiting = mutex.take('a', 'write', async () => {});
    expect(await boundOf(mutex.take('a', 'write', async () => {}))).toBe('CASSANDRA_WRITES_MAX');
    ends.resolve();
    await Promise.all([running, waiting]);
  });

  test('of the changes that wait for one record', async () => {
    const mutex = changeMutex(1);
    const ends = Promise.withResolvers<void>();
    const running = mutex.take('a', 'write', () => ends.promise);
    const waiting = mutex.take('a', 'write', async () => {});
    expect(await boundOf(mutex.take('a', 'write', async () => {}))).toBe('CHANGES_WAITING');
    ends.resolve();
    await Promise.all([running, waiting]);
  });

  test('of the commands that wait for another node, and of their bytes', async () => {
    for (const [bound, bounds] of [
      ['PEER_COMMANDS_MAX', { commandsMax: 1, unsentBytesMax: 1_000 }],
      ['PEER_UNSENT_MIB', { commandsMax: 10, unsentBytesMax: 3 }],
    ] as const) {
      const { stream } = streamWorld(new ManualClock(startMs), undefined, bounds);
      stream.ask('{}').catch(() => {});
      expect(await boundOf(stream.ask('{}'))).toBe(bound);
      vi.useRealTimers();
    }
  });
});

describe('the bounds behind overloaded', () => {
  const root = new URL('../../../..', import.meta.url).pathname;
  const named = new Set(
    ['src', 'cluster']
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
      )
      .filter((path) => path.endsWith('.ts') && !path.startsWith('src/gen/'))
      .flatMap((path) => {
        const text = readFileSync(join(root, path), 'utf8');
        const bounds = [...text.matchAll(/\bbound: '([A-Z][A-Z0-9_]+)'/g)];
        return text.includes("'overloaded'")
          ? [...bounds, ...text.matchAll(/'([A-Z][A-Z0-9_]+_(?:MAX|MIB))'/g)]
          : bounds;
      })
      .map(([, name = '']) => name),
  );

  test('are variables, and the operations manual has a row for each', () => {
    expect(named.size).toBeGreaterThan(12);
    // Their code gives the name to somebody else, who says 'overloaded'.
    for (const name of ['READS_WAITING', 'CASSANDRA_WRITES_MAX']) expect(named).toContain(name);
    const variables = [nodeSettings, clusterSettings].flatMap((table) => Object.values(table)).map(({ name }) => name);
    const manual = readFileSync(join(root, 'docs/operations.md'), 'utf8');
    const section = /\n## Overloaded\n([\s\S]*?)\n## /.exec(manual)?.[1] ?? '';
    for (const name of named) {
      expect(variables).toContain(name);
      expect(section).toMatch(new RegExp(`^\\| \`${name}\` \\|`, 'm'));
    }
  });

  test('have their documented defaults and can be set', () => {
    const mebibyte = 1024 * 1024;
    expect(readConfig({}).changesWaiting).toBe(64);
    expect(readConfig({ CHANGES_WAITING: '12' }).changesWaiting).toBe(12);
    expect(readConfig({}).queues).toEqual({
      ledgerCommandsMax: 4_096,
      ledgerBytesMax: 32 * mebibyte,
      signaturesMax: 10_000,
    });
    const least = {
      REDIS_URL: 'redis://redis:6379',
      CASSANDRA_CONTACT_POINTS: 'cassandra:9042',
      AUTHORITY_KEY_FILE: 'a',
      SECRETS_KEY_FILE: 's',
      CLUSTER_SECRET: '0123456789abcdef',
    };
    const before = readClusterConfig(least);
    expect(before.cassandra).toMatchObject({ requestsMax: 4_096, writesMax: 4_096 });
    expect(before.peerBounds).toEqual({ commandsMax: 16_384, unsentBytesMax: 64 * mebibyte });
    const set = {
      CASSANDRA_REQUESTS_MAX: '5',
      CASSANDRA_WRITES_MAX: '6',
      PEER_COMMANDS_MAX: '64',
      PEER_UNSENT_MIB: '4',
    };
    const queues = { LEDGER_QUEUE_MAX: '9', LEDGER_QUEUE_MIB: '10', SIGNATURE_QUEUE_MAX: '11' };
    const after = readClusterConfig({ ...least, ...set, ...queues });
    expect(after.cassandra).toMatchObject({ requestsMax: 5, writesMax: 6 });
    expect(after.peerBounds).toEqual({ commandsMax: 64, unsentBytesMax: 4 * mebibyte });
    expect(after.node.queues).toEqual({ ledgerCommandsMax: 9, ledgerBytesMax: 10 * mebibyte, signaturesMax: 11 });
  });
});
