import { CassandraSignedHeads } from '../../src/store/cassandra/trees/signed-heads.ts';
import { CassandraTileStore } from '../../src/store/cassandra/trees/tile-store.ts';
import { directSession } from '../simulation/cassandra.ts';
import { SimulatedTables } from '../simulation/tables.ts';
import { emptyTreeData, MemorySignedHeads, MemoryTileStore, nameOfPlace } from '../support/memory-store/trees.ts';
import { treeValues } from './cassandra-tree-values.ts';
import { lmdbTreeFactory } from './lmdb-factory.ts';
import { treeInspectionContract } from './tree-inspection.contract.ts';
import { treesContract } from './trees.contract.ts';
import type { TreeFactory } from './trees.ts';

function memoryFactory(): TreeFactory {
  const data = emptyTreeData();
  const none = Buffer.alloc(0);
  const open = async () => ({ tiles: new MemoryTileStore(data), signedHeads: new MemorySignedHeads(data) });
  return {
    open,
    reopen: open,
    storedHash: async (place) => data.hashes.get(nameOfPlace(place)) ?? none,
    plantHash(place, value) {
      data.hashes.set(nameOfPlace(place), value);
      return open();
    },
    storedHead: async (origin) => data.heads.get(origin)?.value ?? none,
    plantHead(origin, value) {
      data.heads.set(origin, { size: data.heads.get(origin)?.size ?? 0, value });
      return open();
    },
    close: async () => {},
  };
}

function simulatedFactory(): TreeFactory {
  const session = directSession(new SimulatedTables());
  const values = treeValues(session);
  const open = async () => ({
    tiles: new CassandraTileStore(session),
    signedHeads: new CassandraSignedHeads(session),
  });
  return {
    ...values,
    open,
    reopen: open,
    plantHash: (...args) => values.plantHash(...args).then(open),
    plantHead: (...args) => values.plantHead(...args).then(open),
    close: async () => {},
  };
}

treesContract('trees in memory', memoryFactory());
treesContract('trees in the simulated tables of Cassandra', simulatedFactory());
treesContract('trees in LMDB', lmdbTreeFactory());
treeInspectionContract('trees in LMDB, inspected', lmdbTreeFactory());
