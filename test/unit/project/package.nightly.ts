import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../../..');

test('the package holds every test vector and the public protos', { timeout: 60_000 }, () => {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
  });
  const [{ files }] = JSON.parse(packed) as [{ readonly files: readonly { readonly path: string }[] }];
  const paths = new Set(files.map(({ path }) => path));
  const inFolder = (folder: string) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
  const expected = [...inFolder('test/vectors'), ...inFolder('proto/svc')];
  expect(expected.length).toBeGreaterThan(20);
  expect(expected.filter((path) => !paths.has(path))).toEqual([]);
  expect([...paths].filter((path) => /^(?:src|bench|docs|test\/(?!vectors\/))/.test(path))).toEqual([]);
});
