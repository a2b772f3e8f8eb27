import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, vi } from 'vitest';
import { newOrder } from '../support/parties.ts';
import { runNode, suiteDir } from '../support/running-node.ts';
import { pythonPackages, testWith } from './toolchain.ts';

vi.setConfig({ testTimeout: 1_200_000 });

const exec = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const folder = suiteDir();
const bin = join(folder, 'bin');
const protos = join(folder, 'dist/proto');

/** The commands of docs/clients.md, by the text that they begin with. */
function commands(begin: string): string {
  const text = readFileSync(join(root, 'docs/clients.md'), 'utf8');
  const blocks = Array.from(text.matchAll(/^( *)```sh\n(.*?)\n\1```$/gms), ([, indent = '', block = '']) =>
    block.replaceAll(`\n${indent}`, '\n').trimStart(),
  );
  const found = blocks.find((block) => block.startsWith(begin));
  if (found === undefined) throw new Error(`docs/clients.md has no commands that begin with ${begin}`);
  return found;
}

async function shell(script: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await exec('bash', ['-euo', 'pipefail', '-c', script], { cwd, env, maxBuffer: 1e8 });
  return stdout;
}

/** Installs what the commands need. Returns the environment in which they find it. */
async function tools(): Promise<NodeJS.ProcessEnv> {
  mkdirSync(bin);
  const env = await pythonPackages('protobuf==6.33.5', 'googleapis-common-protos');
  // The compiler from Maven Central comes alone. An installed one has the well-known types beside it.
  const artifact = '-Dartifact=com.google.protobuf:protoc:4.33.5:exe:linux-x86_64';
  await exec('mvn', ['-q', 'dependency:copy', artifact, `-DoutputDirectory=${bin}`], { cwd: bin });
  const protoc = join(bin, 'protoc-4.33.5-linux-x86_64.exe');
  chmodSync(protoc, 0o755);
  const wellKnown = join(root, 'node_modules/google-gax/build/protos');
  writeFileSync(join(bin, 'protoc'), `#!/bin/sh\nexec ${protoc} "$@" -I ${wellKnown}\n`, { mode: 0o755 });
  for (const tool of [
    'github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4',
    'google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12',
    'google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2',
  ])
    await exec('go', ['install', tool], { cwd: bin, env: { ...env, GOBIN: bin } });
  // Of `npm run build`, the command that makes dist/proto.
  const buf = join(root, 'node_modules/.bin/buf');
  await exec(buf, ['export', '.', '--path', 'proto/svc/v1', '-o', protos], { cwd: root });
  return { ...env, PATH: [bin, dirname(buf), env.PATH].join(delimiter) };
}

testWith('go', 'the commands of clients.md for gRPC, Connect and the protos do what the page says', async () => {
  const env = await tools();
  await using node = await runNode();
  const { buyer, ledgerId } = await newOrder(node.base);
  const here = (script: string) =>
    script.replaceAll('http://localhost:8080', node.base).replaceAll('localhost:50051', node.grpcAddress);

  const called = await shell(here(commands('grpcurl')), folder, { ...env, API_KEY: buyer.apiKey });
  for (const text of ['grpc.health.v1.Health', 'svc.v1.LedgerService is a service:', `"${ledgerId}"`])
    expect(called).toContain(text);
  const answers = await shell(here(commands('buf curl')), folder, env);
  expect(answers.match(/^\{/gm)).toHaveLength(2);
  expect(answers).toMatch(/"status": ?"ok"/);

  await shell(commands('mkdir -p out'), protos, env);
  await shell(commands('M=$('), protos, env);
  const out = join(protos, 'out');
  expect(readFileSync(join(out, 'svc/v1/CreateLedgerRequest.java'), 'utf8')).toContain('package svc.v1;');
  const imports = { ...env, PYTHONPATH: [env.PYTHONPATH, out].join(delimiter) };
  await shell('python3 -c "from svc.v1 import ledgers_pb2; ledgers_pb2.CreateLedgerRequest()"', out, imports);
  await shell('go mod init your.module && go mod tidy && go build ./svc/v1 ./gen/svc/v1', out, env);
});
