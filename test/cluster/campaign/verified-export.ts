import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';

const CLI = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));
const endMaxMs = 60_000;
const run = promisify(execFile);

/** What `ledger-trust export` and then `ledger-trust verify` made of a ledger. */
export type Proof =
  | { readonly kind: 'proved'; readonly events: number }
  /** The export broke off: whatever was asked was not there just then. */
  | { readonly kind: 'not_read'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string };

/** Exports a ledger through a node and verifies it offline, with the command line as outsiders run it. */
export async function proveLedger(
  cluster: ClusterUnderTest,
  node: NodeUnderTest,
  ledgerId: string,
  apiKey: string,
): Promise<Proof> {
  const file = join(cluster.dir, `${ledgerId}-${Date.now()}.jsonl`);
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, LEDGER_TRUST_API_KEY: apiKey };
  const cli = (...args: string[]) => run(process.execPath, [CLI, ...args], { env, timeout: endMaxMs });
  try {
    await cli('export', ledgerId, '--url', node.baseUrl, '--out', file);
  } catch (error) {
    return { kind: /failures of integrity/.test(said(error)) ? 'failed' : 'not_read', reason: said(error) };
  }
  try {
    const { stdout } = await cli('verify', file, '--authority', cluster.anchorFile, '--json');
    const { verdict, checked } = JSON.parse(stdout) as { verdict: string; checked: { events: number } };
    return verdict === 'valid' ? { kind: 'proved', events: checked.events } : { kind: 'failed', reason: stdout };
  } catch (error) {
    return { kind: 'failed', reason: said(error) };
  }
}

function said(error: unknown): string {
  const { stderr, stdout } = error as { stderr?: string; stdout?: string };
  return `${stderr ?? ''}${stdout ?? ''}` || String(error);
}
