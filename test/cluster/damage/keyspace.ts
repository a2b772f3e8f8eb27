import { expect } from 'vitest';
import type { CassandraSettings } from '../../../src/store/cassandra/session/settings.ts';
import { environmentOf, makeKeyspace } from '../../contract/cassandra-factory.ts';
import { newParty } from '../../support/parties.ts';
import { runNode } from '../../support/running-node.ts';
import { runCli } from '../../support/scrub-cli.ts';
import { grant, makeScene, note, type Scene } from './scene.ts';

interface KeyspaceOptions {
  /** Default: the service's own. */
  readonly bucketEvents?: number;
  /** Notes before the grant, in the same batch. */
  readonly moreNotes?: number;
}

/**
 * Makes the keyspace with `count` scenes, which a node in `dataDir` writes and `copy` copies. The newest batch of a
 * ledger, whose projections may be missing in a sound store, holds the grant.
 */
export async function keyspaceOfScenes(
  settings: CassandraSettings,
  dataDir: string,
  count: number,
  { bucketEvents, moreNotes = 0 }: KeyspaceOptions = {},
): Promise<Scene[]> {
  const env = { ...environmentOf(settings), DATA_DIR: dataDir };
  const copied = () => runCli(env, ['copy', '--from', 'lmdb', '--to', 'cassandra']);
  await makeKeyspace(settings, bucketEvents);
  const scenes: Scene[] = [];
  {
    await using node = await runNode({ dataDir });
    for (let n = 0; n < count; n++) scenes.push(await makeScene(node.base));
  }
  expect(await copied()).toMatchObject({ code: 0, err: '' });
  {
    await using node = await runNode({ dataDir });
    const delegate = await newParty(node.base);
    for (const scene of scenes) {
      for (let n = 0; n < moreNotes; n++) await note(node.base, scene, n);
      await grant(node.base, scene.order, delegate);
    }
  }
  expect(await copied()).toMatchObject({ code: 0, err: '' });
  return scenes;
}
