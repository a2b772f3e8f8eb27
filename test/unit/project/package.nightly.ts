import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../../..');

test('the package holds every test vector, with the licences of those that need one beside them', {
  timeout: 60_000,
}, () => {
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
  const expected = [...inFolder('test/vectors'), ...inFolder('conformance/vectors')];
  expect(expected.length).toBeGreaterThan(15);
  expect(expected.filter((path) => !paths.has(path))).toEqual([]);
  // Beside Apache 2.0, which is the licence of the package itself.
  const rows = readFileSync(join(root, 'test/vectors/README.md'), 'utf8').matchAll(/^\| `([^`]+)`.*\(BSD [^)]*\)/gm);
  const licences = Array.from(rows, ([, file]) => `test/vectors/${file?.replace(/\.json$/, '')}.LICENSE`);
  expect(licences).toEqual(['test/vectors/ed25519-cctv-keys.LICENSE']);
  for (const licence of licences) {
    expect(paths).toContain(licence);
    expect(readFileSync(join(root, licence), 'utf8')).toMatch(/^Copyright[\s\S]*Redistribution and use in source/);
  }
  expect([...paths].filter((path) => /^(?:src|bench|docs|(?:conformance|test)\/(?!vectors\/))/.test(path))).toEqual([]);
});
