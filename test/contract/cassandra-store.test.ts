import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { cassandraFactory } from './cassandra-factory.ts';
import { storeContract } from './store.contract.ts';

await describeOnCassandra('on Cassandra', (address) => {
  storeContract('Cassandra stores', () => cassandraFactory(address));
});
