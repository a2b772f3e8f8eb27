import { fileURLToPath } from 'node:url';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';
import { type CommandEnd, runCommand } from './run-command.ts';

const CLI = fileURLToPath(new URL('../../../cluster/cli.ts', import.meta.url));
const endMaxMs = 30 * 60_000;

/** The result of `ledger-trust cluster verify --all`. */
export interface Scrub {
  /** 0: everything was checked and is right. */
  readonly code: number | null;
  readonly ledgers: number;
  readonly events: number;
  readonly findings: number;
  /** The output, if the code is not 0. */
  readonly told: string;
}

/** Verifies the keyspace with the operators' command, under the cluster's trust anchor. */
export async function scrubAll(cluster: ClusterUnderTest): Promise<Scrub> {
  const args = ['cluster', 'verify', '--all', '--json', '--authority', cluster.anchorFile];
  return scrubOf(await runCommand(CLI, args, cluster.cassandraEnv, endMaxMs));
}

export function scrubOf({ code, out, err }: CommandEnd): Scrub {
  const told = code === 0 ? '' : `${err}${out}`.trim();
  try {
    const { ledgers, events, finding_count } = JSON.parse(out) as Record<string, unknown>;
    return { code, ledgers: Number(ledgers), events: Number(events), findings: Number(finding_count), told };
  } catch {
    return { code, ledgers: 0, events: 0, findings: 0, told: told === '' ? 'it printed no result' : told };
  }
}
