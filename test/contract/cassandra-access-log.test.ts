import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { type AccessLogFactory, accessLogContract } from './access-log.contract.ts';
import { cassandraFactory } from './cassandra-factory.ts';

await describeOnCassandra('Access histories on Cassandra', (address) => {
  const stores = cassandraFactory(address);
  const factory: AccessLogFactory = {
    open: async () => (await stores.open({ nowMs: 0 })).access,
    reopen: async () => (await stores.reopen()).access,
    close: () => stores.close(),
  };
  accessLogContract('Cassandra', factory);
});
