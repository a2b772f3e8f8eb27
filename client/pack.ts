import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

// Builds the package ledger-trust-client into client/dist and packs it. Usage: node client/pack.ts [folder of the
// tarball]

const root = join(import.meta.dirname, '..');
const out = join(import.meta.dirname, 'dist');
const destination = process.argv[2] ?? root;

interface Manifest {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
}
const server = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

const dependencies = [
  '@bufbuild/protobuf',
  '@grpc/grpc-js',
  '@noble/curves',
  '@noble/hashes',
  'eventsource-parser',
  'undici',
];
const types = './lib/client/index.d.ts';
const manifest = {
  name: 'ledger-trust-client',
  version: server.version,
  description: 'The client of the Ledger Trust Service for Node and browsers: signs, retries and verifies.',
  license: server.license,
  type: 'module',
  sideEffects: false,
  // What undici asks for.
  engines: { node: '>=22.19.0' },
  exports: {
    '.': {
      // Both entries have the same names and types: a test compares them.
      types,
      node: './lib/client/index.js',
      browser: './lib/client/browser.js',
      default: './lib/client/browser.js',
    },
    './package.json': './package.json',
  },
  files: ['lib'],
  dependencies: Object.fromEntries(dependencies.map((name) => [name, `^${server.dependencies[name]}`])),
};

rmSync(out, { recursive: true, force: true });
const tsc = join(root, 'node_modules', '.bin', 'tsc');
execFileSync(tsc, ['-p', import.meta.dirname], { stdio: 'inherit' });
cpSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
cpSync(join(import.meta.dirname, 'README.md'), join(out, 'README.md'));
writeFileSync(join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', destination, out], { stdio: 'inherit' });
