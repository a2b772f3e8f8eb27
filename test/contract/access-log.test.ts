import { type MemoryAccessData, MemoryAccessLog } from '../support/memory-store/access-log.ts';
import { accessLogContract, accessOf } from './access-log.contract.ts';
import { lmdbFactory } from './lmdb-factory.ts';

const data: MemoryAccessData = new Map();
const open = async () => new MemoryAccessLog(data);
accessLogContract('memory access log', { open, reopen: open, close: async () => {} });
accessLogContract('LMDB access log', accessOf(lmdbFactory()));
