import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { classArchive } from '../../../cluster/local/cassandra-archive.ts';
import { testDir } from '../../support/running-node.ts';

const said = { stdout: '', stderr: '' };

describe('the class archive of Cassandra', () => {
  let dir = '';
  let asked: string[] = [];
  beforeEach(() => {
    dir = testDir();
    asked = [];
  });

  /** A Java of a version, and a jcmd that does `jcmd` in place of a dump. */
  const java = (version: string, jcmd: (draft: string) => void) => async (command: string, args: readonly string[]) => {
    if (command === 'java') return { ...said, stderr: version };
    asked.push(args.slice(0, -1).join(' '));
    jcmd(args.at(-1) ?? '');
    return said;
  };
  const writes = (draft: string) => writeFileSync(draft, 'classes');

  test('is made once and used from then on', async () => {
    const run = java('17', writes);
    const first = await classArchive('a.jar', dir, run);
    expect(first.args).toContain('-XX:+RecordDynamicDumpInfo');
    await first.keep(4711);
    expect(asked).toEqual(['4711 VM.cds dynamic_dump']);
    const next = await classArchive('a.jar', dir, run);
    const [file = ''] = readdirSync(dir);
    expect(next.args).toEqual([`-XX:SharedArchiveFile=${join(dir, file)}`]);
    await next.keep(4711);
    expect(asked).toHaveLength(1);
    expect(readdirSync(dir)).toEqual([file]);
  });

  test('is another one for other jars and for another Java', async () => {
    await (await classArchive('a.jar', dir, java('17', writes))).keep(1);
    const others = [classArchive('b.jar', dir, java('17', writes)), classArchive('a.jar', dir, java('21', writes))];
    for (const { args } of await Promise.all(others)) expect(args).toContain('-XX:+RecordDynamicDumpInfo');
  });

  const fails = (message: string) => () => {
    throw new Error(message);
  };
  test.each<[string, (draft: string) => void]>([
    ['there is no jcmd', fails('ENOENT')],
    ['it writes nothing', () => {}],
    [
      'it ends in the middle',
      (draft) => {
        writes(draft);
        throw new Error('killed');
      },
    ],
  ])('is not kept if %s', async (_, jcmd) => {
    await (await classArchive('a.jar', dir, java('17', jcmd))).keep(1);
    expect(readdirSync(dir)).toEqual([]);
  });

  test('is missing without Java', async () => {
    const none = await classArchive('a.jar', join(dir, 'cache'), () => Promise.reject(new Error('ENOENT')));
    await none.keep(1);
    expect(readdirSync(join(dir, 'cache'))).toEqual([]);
  });
});
