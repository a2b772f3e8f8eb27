import {
  GenericContainer,
  getContainerRuntimeClient,
  ImageName,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import type { CassandraAddress, RedisAddress } from './backend.ts';

const cassandraImage = 'cassandra:5.0';
const redisImage = 'redis:7-alpine';
const cqlPort = 9042;
const redisPort = 6379;
const startMaxMs = 180_000;

/** An image that an engine here can run, or why not. */
export async function usableImage(image: string): Promise<{ readonly missing: string } | null> {
  try {
    const client = await getContainerRuntimeClient();
    const name = ImageName.fromString(image);
    if (await client.image.exists(name)) return null;
    await client.image.pull(name);
    return null;
  } catch (error) {
    const [line] = String(error instanceof Error ? error.message : error).split('\n');
    return { missing: `no container engine that has ${image} (${line})` };
  }
}

interface Contained<T> extends AsyncDisposable {
  readonly address: T;
}

export const containers = {
  cassandra: { image: cassandraImage, start: startCassandraContainer },
  redis: { image: redisImage, start: startRedisContainer },
};

async function startCassandraContainer(): Promise<Contained<CassandraAddress>> {
  const container = await new GenericContainer(cassandraImage)
    .withExposedPorts(cqlPort)
    .withEnvironment({
      MAX_HEAP_SIZE: '1G',
      HEAP_NEWSIZE: '256M',
      // The image's own yaml syncs its commit log every ten seconds.
      JVM_EXTRA_OPTS:
        '-Dcassandra.config.allow_system_properties=true -Dcassandra.settings.commitlog_sync=batch -Dcassandra.settings.commitlog_sync_period=0ms -Dcassandra.settings.paxos_variant=v2 -Dcassandra.skip_wait_for_gossip_to_settle=0',
    })
    .withWaitStrategy(Wait.forListeningPorts())
    .withStartupTimeout(startMaxMs)
    .start();
  const point = `${container.getHost()}:${container.getMappedPort(cqlPort)}`;
  const address = { contactPoints: [point], localDataCenter: 'datacenter1', allow: [] };
  return { address, ...disposable(container) };
}

async function startRedisContainer(): Promise<Contained<RedisAddress>> {
  const container = await new GenericContainer(redisImage)
    .withExposedPorts(redisPort)
    .withWaitStrategy(Wait.forListeningPorts())
    .start();
  return {
    address: { url: `redis://${container.getHost()}:${container.getMappedPort(redisPort)}` },
    ...disposable(container),
  };
}

function disposable(container: StartedTestContainer): AsyncDisposable {
  return { [Symbol.asyncDispose]: async () => void (await container.stop()) };
}
