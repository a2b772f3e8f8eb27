import { afterAll, describe, inject, test } from 'vitest';
import type { Backend, Backends, CassandraAddress, RedisAddress } from './backend.ts';
import { backendsAt } from './counter.ts';
import type {} from './global-setup.ts';
import { provisionBackends } from './provision.ts';

/**
 * The backends of this run. Without the global setup (a run with another configuration) the test file starts its own
 * and ends them.
 */
export function backendsForTests(): Backends {
  const path = inject('backendsSocket');
  if (path !== undefined) return backendsAt(path);
  const own = provisionBackends(process.env);
  afterAll(() => own[Symbol.asyncDispose]());
  return own;
}

/** A suite on Cassandra. Where there is none it is skipped with the reason, or fails with it if REQUIRE_BACKENDS=1. */
export async function describeOnCassandra(name: string, suite: (address: CassandraAddress) => void): Promise<void> {
  describeOn(name, 'Cassandra', await backendsForTests().cassandra(), suite);
}

/** The same on Redis. */
export async function describeOnRedis(name: string, suite: (address: RedisAddress) => void): Promise<void> {
  describeOn(name, 'Redis', await backendsForTests().redis(), suite);
}

/** A suite on something that may be missing. */
export function describeOn<T>(name: string, what: string, backend: Backend<T>, suite: (address: T) => void): void {
  if (backend.kind === 'there') {
    describe(name, () => suite(backend.address));
    return;
  }
  const title = `${name}: there is no ${what} here: ${backend.reason}`;
  if (process.env.REQUIRE_BACKENDS === '1') {
    test(title, () => {
      throw new Error(title);
    });
  } else test.skip(title, () => {});
}
