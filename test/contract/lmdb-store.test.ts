import { lmdbFactory } from './lmdb-factory.ts';
import { storeContract } from './store.contract.ts';

storeContract('LMDB stores', lmdbFactory);
