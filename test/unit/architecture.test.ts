import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * The walls of the house, read off the import lines: who may import whom (docs/architecture.md). Generated code is open to all
 * but the domain.
 */
const root = resolve(import.meta.dirname, '../..');

interface SourceFile {
  readonly path: string;
  readonly text: string;
  /** Files of the project, from the root; packages by their names. */
  readonly imports: readonly string[];
}

function sourceFiles(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.includes('/src/gen/'))
    .map((path) => {
      const text = readFileSync(path, 'utf8');
      const specifiers = [...text.matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)'([^']+)'/gm)].map(
        ([, name]) => name ?? '',
      );
      const imports = specifiers.map((name) =>
        name.startsWith('.') ? relative(root, resolve(dirname(path), name)) : name,
      );
      return { path: relative(root, path), text, imports };
    });
}

const files = [...sourceFiles('src'), ...sourceFiles('cluster')];
const under = (prefix: string) => files.filter(({ path }) => path.startsWith(prefix));
const isProject = (name: string) => name.startsWith('src/') || name.startsWith('cluster/') || name.startsWith('test/');

function strangers(prefix: string, allowed: (name: string, file: SourceFile) => boolean): string[] {
  return under(prefix).flatMap((file) =>
    file.imports
      .filter((name) => isProject(name) && !allowed(name, file))
      .map((name) => `${file.path} imports ${name}`),
  );
}

const isPort = (name: string) => /^src\/store\/[^/]+\.ts$/.test(name);

describe('who imports whom', () => {
  test('there are files to look at', () => {
    expect(under('src/domain/').length).toBeGreaterThan(20);
  });

  test('the domain imports nothing of the project', () => {
    expect(strangers('src/domain/', (name) => name.startsWith('src/domain/'))).toEqual([]);
  });

  test('store ports import the domain', () => {
    const wrong = files
      .filter(({ path }) => isPort(path))
      .flatMap(({ path, imports }) =>
        imports
          .filter((name) => isProject(name) && !name.startsWith('src/domain/') && !isPort(name))
          .map((name) => `${path}: ${name}`),
      );
    expect(wrong).toEqual([]);
  });

  test('a store adapter imports the ports, the domain and its own folder', () => {
    for (const adapter of ['memory', 'lmdb', 'cassandra']) {
      const own = `src/store/${adapter}/`;
      expect(strangers(own, (name) => name.startsWith(own) || name.startsWith('src/domain/') || isPort(name))).toEqual(
        [],
      );
    }
  });

  test('actors import the domain and ports', () => {
    expect(
      strangers(
        'src/actors/',
        (name) => name.startsWith('src/actors/') || name.startsWith('src/domain/') || isPort(name),
      ),
    ).toEqual([]);
  });

  test('services know neither transports nor adapters', () => {
    const allowed = ['src/service/', 'src/domain/', 'src/actors/', 'src/gen/'];
    expect(
      strangers('src/service/', (name) => allowed.some((prefix) => name.startsWith(prefix)) || isPort(name)),
    ).toEqual([]);
  });

  test('transports know neither actors nor adapters', () => {
    const wrong = strangers(
      'src/rpc/',
      (name) => !name.startsWith('src/actors/') && (!name.startsWith('src/store/') || isPort(name)),
    );
    expect(wrong).toEqual([]);
  });

  test('the client imports the domain and the generated descriptors', () => {
    const allowed = ['src/client/', 'src/domain/', 'src/gen/'];
    expect(strangers('src/client/', (name) => allowed.some((prefix) => name.startsWith(prefix)))).toEqual([]);
  });

  test('src never imports cluster, and nothing imports tests', () => {
    expect(strangers('src/', (name) => name.startsWith('src/'))).toEqual([]);
    expect(strangers('cluster/', (name) => name.startsWith('src/') || name.startsWith('cluster/'))).toEqual([]);
  });

  test('the environment is read in the mains alone', () => {
    const mains = /^(src\/main\.ts|src\/cli\/|cluster\/(local\/)?main\.ts|cluster\/cli\.ts|src\/config\.ts)/;
    expect(
      files.filter(({ path, text }) => /process\.env\b/.test(text) && !mains.test(path)).map(({ path }) => path),
    ).toEqual([]);
  });

  test('clock and randomness enter the domain, the actors and the services as arguments', () => {
    const reads = /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\brandomBytes\(\d|\brandomUUID\(|\bperformance\.now\(/;
    const pure = ['src/domain/', 'src/actors/', 'src/service/', 'src/store/'];
    const wrong = files.filter(({ path, text }) => pure.some((prefix) => path.startsWith(prefix)) && reads.test(text));
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test('signatures are verified in three files, each of which refuses an R that is the identity point', () => {
    const library = /import \{[^}]*\bverify\b[^}]*\} from 'node:crypto'|crypto_sign_verify_detached|createVerify\(/;
    const verifying = files.filter(({ text }) => library.test(text));
    expect(verifying.map(({ path }) => path).sort()).toEqual([
      'src/domain/signature.ts',
      'src/service/signatures/signature-check.ts',
      'src/service/signatures/signature-verifier.ts',
    ]);
    for (const { path, text } of verifying)
      expect([path, text.includes('hasIdentityR(signature)')]).toEqual([path, true]);
  });

  test('every public key that something verifies under is read by verifyingKey', () => {
    const raw = files.filter(
      ({ path, text }) =>
        /\bkeyObject\b[^}]*\} from '[^']*public-key/.test(text) && path !== 'src/domain/public-key.ts',
    );
    expect(raw.map(({ path }) => path)).toEqual([]);
  });

  test('what follows the ledgers and what sends meet in delivery records alone', () => {
    const sends = ['sending', 'targets', 'posting'].map((name) => `src/webhook/${name}/`);
    const follows = 'src/webhook/following/';
    expect(strangers(follows, (name) => !sends.some((folder) => name.startsWith(folder)))).toEqual([]);
    for (const folder of sends) expect(strangers(folder, (name) => !name.startsWith(follows))).toEqual([]);
    expect(under(follows).length).toBeGreaterThan(10);
  });

  test('there are no cycles', () => {
    expect(cyclesOf(new Map(files.map(({ path, imports }) => [path, imports])))).toEqual([]);
  });

  test.each(['src/rpc', 'src/service', 'src/webhook'])('nor between the folders of %s', (room) => {
    const folders = new Map<string, Set<string>>();
    for (const { path, imports } of under(`${room}/`)) {
      const folder = dirname(path);
      const others = imports.map(dirname).filter((name) => name !== folder && name.startsWith(room));
      folders.set(folder, new Set([...(folders.get(folder) ?? []), ...others]));
    }
    expect(folders.size).toBeGreaterThan(1);
    expect(cyclesOf(folders)).toEqual([]);
  });
});

/** The ways that lead back to where they begin. What the graph has no entry for leads nowhere. */
function cyclesOf(graph: ReadonlyMap<string, Iterable<string>>): string[] {
  const done = new Set<string>();
  const cycles: string[] = [];
  const walk = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
      return;
    }
    if (done.has(path)) return;
    for (const name of graph.get(path) ?? []) walk(name, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) walk(path, []);
  return cycles;
}
