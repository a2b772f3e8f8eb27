import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCassandra } from '../../../cluster/local/cassandra.ts';
import { startRedis } from '../../../cluster/local/redis.ts';
import type { Backend, Backends, CassandraAddress, RedisAddress } from './backend.ts';

/** Backends, each started when it is first asked for and once. */
interface Provision extends Backends, AsyncDisposable {}

type Environment = { readonly [name: string]: string | undefined };

interface Source<T> {
  readonly given: () => T | null;
  readonly container: 'cassandra' | 'redis';
  readonly local: (dir: string, stopping: AbortSignal) => Promise<{ readonly address: T } & AsyncDisposable>;
}

/**
 * Where a backend comes from: the address in the environment; else a container, if an engine answers and has or can
 * pull the image; else a local process; else nowhere, with the reasons.
 */
export function provisionBackends(env: Environment): Provision {
  const toDispose: AsyncDisposable[] = [];
  const stopping = new AbortController();
  const provide = async <T>({ given, container, local }: Source<T>): Promise<Backend<T>> => {
    const began = performance.now();
    const there = (address: T, from: string): Backend<T> => {
      return { kind: 'there', address, startupMs: Math.round(performance.now() - began), from };
    };
    const address = given();
    if (address !== null) return there(address, 'the environment');
    // Loading Testcontainers takes longer than starting Redis.
    const { containers, usableImage } = await import('./containers.ts');
    const unusable = await usableImage(containers[container].image);
    if (unusable === null) {
      const running = await containers[container].start();
      toDispose.push(running);
      return there(running.address as T, 'a container');
    }
    const dir = await mkdtemp(join(tmpdir(), `lts-${container}-`));
    toDispose.push({ [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) });
    try {
      const running = await local(dir, stopping.signal);
      toDispose.push(running);
      return there(running.address, 'local processes');
    } catch (error) {
      const [line] = String(error instanceof Error ? error.message : error).split('\n');
      return { kind: 'missing', reason: `${unusable.missing}; no local process (${line})` };
    }
  };
  const begun: Promise<unknown>[] = [];
  const startedOnce = <T>(source: Source<T>) =>
    once(() => {
      const start = provide(source);
      begun.push(start);
      return start;
    });
  return {
    cassandra: startedOnce(cassandraSource(env)),
    redis: startedOnce(redisSource(env)),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.allSettled(begun);
      // The other way round: a process ends before its directory goes.
      for (const running of toDispose.reverse()) await running[Symbol.asyncDispose]();
    },
  };
}

/** A client timeout for conditional writes: suites that do not judge time share Cassandra on a busy machine. */
const sharedCassandraMaxMs = 4_000;

function cassandraSource(env: Environment): Source<CassandraAddress> {
  return {
    container: 'cassandra',
    given: () => {
      const points = (env.CASSANDRA_CONTACT_POINTS ?? '').split(',').filter((point) => point !== '');
      if (points.length === 0) return null;
      const allow = (env.CASSANDRA_ALLOW ?? '').split(',').filter((name) => name !== '');
      return { contactPoints: points, localDataCenter: env.CASSANDRA_DATA_CENTER || 'datacenter1', allow };
    },
    local: async (dir, signal) => {
      const writeMaxMs = sharedCassandraMaxMs;
      const start = (name: string) =>
        startCassandra({ nodes: 1, dir: join(dir, name), isThrownAway: true, writeMaxMs, signal });
      const local = await start('first').catch((error) => {
        signal.throwIfAborted();
        // A suite of this run can have taken its port, or the machine was too busy.
        console.warn(`Cassandra is started once more: ${error}`);
        return start('second');
      });
      const { contactPoints, localDataCenter } = local;
      return {
        address: { contactPoints, localDataCenter, allow: [] },
        [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
      };
    },
  };
}

function redisSource(env: Environment): Source<RedisAddress> {
  return {
    container: 'redis',
    given: () => (env.REDIS_URL ? { url: env.REDIS_URL } : null),
    local: async (dir) => {
      const local = await startRedis({ dir });
      return { address: { url: local.url }, [Symbol.asyncDispose]: () => local[Symbol.asyncDispose]() };
    },
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => {
    made ??= make();
    return made;
  };
}
