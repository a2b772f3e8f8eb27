import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { runCommand } from './run-command.ts';

const CLI = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));
const endMaxMs = 60_000;

/** The result of `ledger-trust export` and `ledger-trust verify` of a ledger. */
export type Proof =
  | { readonly kind: 'proved'; readonly events: number }
  /** The export failed, as during a fault. */
  | { readonly kind: 'not_read'; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string };

/** Exports a ledger through a node and verifies it offline, with the command line that outsiders use. */
export async function proveLedger(
  cluster: ClusterUnderTest,
  node: NodeUnderTest,
  ledgerId: string,
  apiKey: string,
): Promise<Proof> {
  const file = join(cluster.dir, `${ledgerId}-${Date.now()}.jsonl`);
  const cli = (...args: string[]) => runCommand(CLI, args, { LEDGER_TRUST_API_KEY: apiKey }, endMaxMs);
  const exported = await cli('export', ledgerId, '--url', node.baseUrl, '--out', file);
  if (exported.code !== 0) {
    const reason = `${exported.err}${exported.out}`;
    return { kind: /failures of integrity/.test(reason) ? 'failed' : 'not_read', reason };
  }
  // The actors' keys are those in the file, which the service just wrote.
  const anchor = `${file}.anchor`;
  writeFileSync(anchor, JSON.stringify({ ...JSON.parse(readFileSync(cluster.anchorFile, 'utf8')), ...logIn(file) }));
  const verified = await cli('verify', file, '--authority', anchor, '--trust-file-keys', '--json');
  if (verified.code !== 0) return { kind: 'failed', reason: `${verified.err}${verified.out}` };
  const { verdict, checked } = JSON.parse(verified.out) as { verdict: string; checked: { events: number } };
  return verdict === 'valid' ? { kind: 'proved', events: checked.events } : { kind: 'failed', reason: verified.out };
}

/** Who signs checkpoints, as the trust anchor in an export says. In development mode no authority endorses them. */
function logIn(file: string): object {
  const lines = readFileSync(file, 'utf8').split('\n');
  const line = lines.find((one) => one.startsWith('{"authority":')) ?? '{"authority":{}}';
  const { authority } = JSON.parse(line) as { readonly authority: { readonly log?: unknown; readonly phase?: string } };
  return { log: authority.log ?? null, phase: authority.phase };
}
