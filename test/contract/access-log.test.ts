import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LmdbStores, openLmdb } from '../../src/store/lmdb/open.ts';
import { type MemoryAccessData, MemoryAccessLog } from '../support/memory-store/access-log.ts';
import { type AccessLogFactory, accessLogContract } from './access-log.contract.ts';

function memoryFactory(): AccessLogFactory {
  const data: MemoryAccessData = new Map();
  const open = async () => new MemoryAccessLog(data);
  return { open, reopen: open, close: async () => {} };
}

function lmdbFactory(): AccessLogFactory {
  let parent: string | null = null;
  let stores: LmdbStores | null = null;
  const onFatal = (error: Error) => {
    throw error;
  };
  const reopen = async () => {
    if (parent === null) throw new Error('The log was not opened');
    await stores?.[Symbol.asyncDispose]();
    stores = await openLmdb({ dataDir: join(parent, 'data'), now: () => 0, onFatal });
    return stores.access;
  };
  return {
    open: async () => {
      parent = await mkdtemp(join(tmpdir(), 'lts-access-'));
      return reopen();
    },
    reopen,
    close: async () => {
      await stores?.[Symbol.asyncDispose]();
      // Only ever the directory that was made here.
      if (parent !== null) await rm(parent, { recursive: true, force: true });
    },
  };
}

accessLogContract('memory access log', memoryFactory());
accessLogContract('LMDB access log', lmdbFactory());
