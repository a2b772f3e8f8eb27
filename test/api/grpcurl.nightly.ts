import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 600_000 });

const run = promisify(execFile);
const bin = suiteDir();
let node: RunningTestNode;

beforeAll(async () => {
  node = await runNode();
  const env = { ...process.env, GOBIN: bin };
  await run('go', ['install', 'github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4'], { cwd: bin, env });
});

afterAll(async () => {
  await node?.stop();
});

function grpcurl(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return run(join(bin, 'grpcurl'), ['-plaintext', ...args]).catch((error: { stdout: string; stderr: string }) => error);
}

test('grpcurl describes every service that reflection lists', async () => {
  const { stdout: listed } = await grpcurl(node.grpcAddress, 'list');
  expect(listed).toContain('grpc.health.v1.Health');
  const { stdout, stderr } = await grpcurl(node.grpcAddress, 'describe');
  expect(stderr ?? '').toBe('');
  for (const name of listed.trim().split('\n')) expect(stdout).toContain(`${name} is a service:`);
});

test('grpcurl shows the ErrorInfo of an error decoded', async () => {
  const { stderr } = await grpcurl(node.grpcAddress, 'svc.v1.LedgerService/ListLedgers');
  expect(stderr).toContain('google.rpc.ErrorInfo');
  expect(stderr).toMatch(/"reason":\s*"unauthenticated"/);
});
