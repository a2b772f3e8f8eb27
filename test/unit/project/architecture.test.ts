import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * The walls of the house, read off the import lines: who may import whom (docs/architecture.md). Generated code is open
 * to all but the domain.
 */
const root = resolve(import.meta.dirname, '../../..');

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

/** The rooms from the ground up (docs/architecture.md). A room imports itself and rooms of lower floors. */
const floors = [
  ['src/domain', 'src/runtime'],
  ['src/store', 'src/client'],
  ['src/actors', 'src/sandbox'],
  ['src/service'],
  ['src/rpc', 'src/webhooks', 'src/maintenance'],
  ['src/node'],
  ['src/cli'],
  ['src/main.ts', 'cluster'],
];
const rooms = floors.flat().filter((room) => !room.endsWith('.ts'));
const roomOf = (path: string) =>
  path
    .split('/')
    .slice(0, path.startsWith('src/') ? 2 : 1)
    .join('/');
const floorOf = (path: string) => floors.findIndex((room) => room.includes(roomOf(path)));

describe('folders and imports', () => {
  test('src has folders and main.ts only', () => {
    const inSrc = new Set([...under('src/').map(({ path }) => roomOf(path)), 'cluster']);
    expect([...inSrc].sort()).toEqual(floors.flat().sort());
  });

  test('no folder has more than twenty files', () => {
    const sizes = Map.groupBy(files, ({ path }) => dirname(path));
    expect([...sizes].filter(([, inFolder]) => inFolder.length > 20).map(([folder]) => folder)).toEqual([]);
  });

  test('a folder imports folders of lower floors only', () => {
    const wrong = files.flatMap(({ path, imports }) =>
      imports
        .filter((name) => isProject(name) && !name.startsWith('src/gen/') && roomOf(name) !== roomOf(path))
        .filter((name) => floorOf(name) < 0 || floorOf(name) >= floorOf(path))
        .map((name) => `${path} imports ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  test('there are no cycles', () => {
    expect(cyclesOf(new Map(files.map(({ path, imports }) => [path, imports])))).toEqual([]);
  });

  test.each(rooms)('there are no cycles between the folders of %s', (room) => {
    const inRoom = under(`${room}/`);
    const withFolders = new Set(inRoom.map(({ path }) => dirname(dirname(path))));
    // A file that stands beside folders is a place of its own.
    const placeOf = (path: string) => (withFolders.has(dirname(path)) ? path : dirname(path));
    const places = new Map<string, Set<string>>();
    for (const { path, imports } of inRoom) {
      const place = placeOf(path);
      const others = imports.filter((name) => name.startsWith(`${room}/`)).map(placeOf);
      places.set(place, new Set([...(places.get(place) ?? []), ...others.filter((other) => other !== place)]));
    }
    expect(cyclesOf(places)).toEqual([]);
  });

  test('every export is used by another file', () => {
    const users = [...files, ...sourceFiles('test'), ...sourceFiles('bench'), ...sourceFiles('docs')];
    const used = new Map<string, Set<string>>();
    for (const { path, text } of users)
      for (const [, names = '', from = ''] of text.matchAll(
        /(?:import|export)\s+(?:type\s+)?\{([^}]*)\}\s+from\s+'(\.[^']+)'/g,
      )) {
        const target = relative(root, resolve(root, dirname(path), from));
        const set = used.get(target) ?? new Set();
        for (const name of names.split(','))
          set.add(
            name
              .trim()
              .replace(/^type\s+/, '')
              .split(/\s+as\s+/)[0] ?? '',
          );
        used.set(target, set);
      }
    // What a command loads when it runs is used as a whole.
    const loaded = new Set(
      users.flatMap(({ path, text }) =>
        [...text.matchAll(/\bimport(?:\(\s*| \* as \w+ from )'(\.[^']+)'/g)].map(([, from = '']) =>
          relative(root, resolve(root, dirname(path), from)),
        ),
      ),
    );
    const exported =
      /^export (?:default )?(?:declare )?(?:abstract )?(?:async )?(?:class|function\*?|const|interface|type|enum) (\w+)/gm;
    const unused = files.flatMap(({ path, text }) =>
      [...text.matchAll(exported)]
        .map(([, name = '']) => name)
        .filter((name) => !loaded.has(path) && !used.get(path)?.has(name))
        .map((name) => `${path} ${name}`),
    );
    expect(unused).toEqual([]);
  });
});

describe('dependencies', () => {
  test('the domain imports nothing of the project', () => {
    expect(under('src/domain/').length).toBeGreaterThan(20);
    expect(strangers('src/domain/', (name) => name.startsWith('src/domain/'))).toEqual([]);
  });

  test('the ground floor imports nothing of the project', () => {
    expect(strangers('src/runtime/', (name) => name.startsWith('src/runtime/'))).toEqual([]);
  });

  test('a store adapter imports the ports and its own folder', () => {
    const adapters = new Set(under('src/store/').flatMap(({ path }) => path.split('/').slice(2, -1)[0] ?? []));
    expect([...adapters]).toEqual(expect.arrayContaining(['lmdb', 'cassandra']));
    for (const adapter of adapters) {
      const own = `src/store/${adapter}/`;
      expect(under(own).length).toBeGreaterThan(5);
      const wrong = strangers(own, (name) => name.startsWith(own) || isPort(name) || !name.startsWith('src/store/'));
      expect(wrong).toEqual([]);
    }
  });

  test('code above the stores imports the ports only, except wiring and commands', () => {
    for (const room of ['src/actors/', 'src/service/', 'src/rpc/', 'src/webhooks/', 'src/maintenance/'])
      expect(strangers(room, (name) => !name.startsWith('src/store/') || isPort(name))).toEqual([]);
  });

  test('transports import services and no actors', () => {
    expect(strangers('src/rpc/', (name) => !name.startsWith('src/actors/'))).toEqual([]);
  });

  test('the client imports the domain and the generated descriptors', () => {
    const allowed = ['src/client/', 'src/domain/', 'src/gen/'];
    expect(strangers('src/client/', (name) => allowed.some((prefix) => name.startsWith(prefix)))).toEqual([]);
  });

  test('nothing imports tests', () => {
    expect(files.flatMap(({ imports }) => imports.filter((name) => name.startsWith('test/')))).toEqual([]);
  });

  test('only the mains read the environment', () => {
    const mains = /^(src\/main\.ts|src\/cli\/|cluster\/(local\/)?main\.ts|cluster\/cli\.ts|src\/node\/config\.ts)/;
    expect(
      files.filter(({ path, text }) => /process\.env\b/.test(text) && !mains.test(path)).map(({ path }) => path),
    ).toEqual([]);
  });

  test('the domain, actors and services get clock and randomness as arguments', () => {
    const reads = /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\brandomBytes\(\d|\brandomUUID\(|\bperformance\.now\(/;
    const pure = ['src/domain/', 'src/actors/', 'src/service/', 'src/store/'];
    const wrong = files.filter(({ path, text }) => pure.some((prefix) => path.startsWith(prefix)) && reads.test(text));
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test('the domain of checkpoints and proofs runs in browsers: it takes hashes, base64 and keys from src/domain/keys', () => {
    const inLog = under('src/domain/log/');
    expect(inLog.length).toBeGreaterThan(5);
    const allowed = ['src/domain/log/', 'src/domain/keys/', 'src/domain/values/uuid'];
    const wrong = inLog.flatMap(({ path, text, imports }) => [
      ...imports.filter((name) => !allowed.some((prefix) => name.startsWith(prefix))).map((name) => `${path} ${name}`),
      ...(/\b(?:Buffer|process|require)\b/.test(text) ? [`${path} names what only Node has`] : []),
    ]);
    expect(wrong).toEqual([]);
  });

  test('two files verify signatures with a library, and each refuses the identity point as R', () => {
    const library = /import \{[^}]*\bverify\b[^}]*\} from 'node:crypto'|crypto_sign_verify_detached|createVerify\(/;
    const verifying = files.filter(({ text }) => library.test(text));
    expect(verifying.map(({ path }) => path).sort()).toEqual([
      'src/domain/keys/key-object.ts',
      'src/service/signatures/signature-check.ts',
    ]);
    for (const { path, text } of verifying)
      expect([path, text.includes('hasIdentityR(signature)')]).toEqual([path, true]);
  });

  test('the verifiers of the crypto port are made in one file, which refuses the identity point as R', () => {
    const making = files.filter(({ text }) => /\.ed25519Verifier\(/.test(text));
    expect(making.map(({ path }) => path)).toEqual(['src/domain/keys/signature.ts']);
    expect(making[0]?.text).toContain('!hasIdentityR(signature) && verify(digest, signature)');
  });

  test('what a page loads of the client imports no module of Node, no grpc-js and no undici', () => {
    const loaded = new Set<string>();
    const load = (path: string): void => {
      if (loaded.has(path)) return;
      loaded.add(path);
      const text = readFileSync(join(root, path), 'utf8');
      for (const [, from = ''] of text.matchAll(/^(?:import|export) (?!type)[^;'"]*from ['"]([^'"]+)['"]/gm))
        if (from.startsWith('.')) load(relative(root, resolve(root, dirname(path), from)));
        else loaded.add(from);
    };
    load('src/client/browser.ts');
    const packages = [...loaded].filter((name) => !name.startsWith('src/')).sort();
    expect(packages).toEqual([
      '@bufbuild/protobuf',
      '@bufbuild/protobuf/codegenv2',
      '@bufbuild/protobuf/wkt',
      '@noble/curves/ed25519.js',
      '@noble/hashes/hmac.js',
      '@noble/hashes/sha2.js',
      '@noble/hashes/utils.js',
    ]);
    const ofNode = [...loaded].filter(
      (name) =>
        name.startsWith('src/') && /\bBuffer\.|\bprocess\.(?!getBuiltin)/.test(readFileSync(join(root, name), 'utf8')),
    );
    expect(ofNode).toEqual(['src/domain/keys/crypto-node.ts']);
  });

  test('every public key for verification is read by verifyingKey', () => {
    const raw = files.filter(
      ({ path, text }) =>
        /\bkeyObject\b[^}]*\} from '[^']*key-object/.test(text) && path !== 'src/domain/keys/verifying-key.ts',
    );
    expect(raw.map(({ path }) => path)).toEqual([]);
  });

  test('the log tailer and the sender share delivery records only', () => {
    const sends = ['send', 'post'].map((name) => `src/webhooks/${name}/`);
    const follows = 'src/webhooks/tail/';
    expect(strangers(follows, (name) => !sends.some((folder) => name.startsWith(folder)))).toEqual([]);
    for (const folder of sends) expect(strangers(folder, (name) => !name.startsWith(follows))).toEqual([]);
    expect(under(follows).length).toBeGreaterThan(10);
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
