import { randomBytes } from 'node:crypto';
import { progressBar } from '../../src/cli/terminal/progress-bar.ts';
import { CliError, inputError, type Terminal, usageError } from '../../src/cli/terminal/terminal.ts';
import { readAuthorityDocument } from '../../src/cli/verify/verify-input.ts';
import { type AuthorityKeys, authorityKeysOf } from '../../src/client/verify/key-source.ts';
import type { Finding } from '../../src/maintenance/scrub/finding.ts';
import { type ScrubParts, scrubLedger } from '../../src/maintenance/scrub/scrub-ledger.ts';
import { type StoreScrub, scrubStore } from '../../src/maintenance/scrub/scrub-store.ts';
import { scrubTrees, type TreeScrub } from '../../src/maintenance/scrub/scrub-trees.ts';
import { storedAuthority, storedKeys } from '../../src/maintenance/scrub/stored-keys.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { ConfigError } from '../../src/runtime/start-error.ts';
import { readLog } from '../../src/service/log-identity/log-record.ts';
import { CassandraInspection } from '../../src/store/cassandra/inspection.ts';
import { projectionWriter } from '../../src/store/cassandra/log/projection-writer.ts';
import { openCassandra } from '../../src/store/cassandra/open.ts';
import { type CassandraSettings, cassandraSettings } from '../../src/store/cassandra/session/settings.ts';
import { CassandraTreeInspection } from '../../src/store/cassandra/trees/tree-inspection.ts';
import { passOverDamaged } from '../../src/store/unreadable-record.ts';
import { checkClock } from '../clock-check.ts';

/** The command line options of `cluster verify`. */
export interface VerifyOptions {
  readonly all?: boolean;
  readonly authority?: string;
  readonly json?: boolean;
  readonly finish?: boolean;
  readonly repair?: boolean;
}

/** What was found in the keyspace. `trees` null: one ledger was checked, and no tree. */
export interface ClusterScrub extends StoreScrub {
  readonly trees: TreeScrub | null;
}

const barSteps = 1_000;

/** Findings about trees that are kept. Further ones are only counted. */
const treeFindingsMax = 10_000;

type LedgerParts = Omit<ScrubParts, 'expectations'>;
type TreeParts = Omit<Parameters<typeof scrubTrees>[0], 'found' | 'progress'>;

/**
 * Scrubs ledgers of the keyspace that the CASSANDRA_ variables name: one ledger, or all of them if `ledgerId` is null.
 * Throws CliError or StartError, each with one sentence for the operator.
 */
export async function verifyLedgers(
  terminal: Terminal,
  ledgerId: string | null,
  options: VerifyOptions,
): Promise<ClusterScrub> {
  const named = options.authority === undefined ? null : await authorityIn(terminal, options.authority);
  const settings = settingsIn(terminal);
  const now = () => systemClock.now();
  await using stores = await openCassandra({ settings, now, random: (bytes) => randomBytes(bytes) });
  await checkClock(() => stores.time(), now);
  const { session, bucketEvents } = stores;
  const stored = await storedAuthority(stores.records, named ?? []);
  const damaged: Finding[] = [...stored.findings];
  const parts: LedgerParts = {
    ledgers: stores.ledgers,
    inspection: new CassandraInspection({ session, bucketEvents, now }),
    keys: storedKeys(stores.records, (finding) => void damaged.push(finding)),
    authorityKeys: named ?? stored.keys,
    now,
    finish: options.finish === true ? projectionWriter({ session, bucketEvents, now }) : null,
  };
  const treeParts = {
    ...{ ledgers: stores.ledgers, trees: new CassandraTreeInspection(session, now), now },
    repair: options.repair === true,
    // The scrub of the records finds a damaged one.
    serviceName: (await passOverDamaged(readLog(stores.records)))?.log?.origin ?? null,
  };
  const scrub =
    ledgerId === null ? await all(terminal, parts, treeParts) : await one(parts, ledgerId, settings.keyspace);
  return {
    ...scrub,
    findings: [...damaged, ...scrub.findings],
    findingCount: damaged.length + scrub.findingCount,
  };
}

/** A wrong CASSANDRA_ variable is reported as a usage error, like a wrong command line. */
function settingsIn(terminal: Terminal): CassandraSettings {
  try {
    return cassandraSettings(terminal.env);
  } catch (error) {
    throw error instanceof ConfigError ? usageError(error.message) : error;
  }
}

async function authorityIn(terminal: Terminal, file: string): Promise<AuthorityKeys> {
  const document = await readAuthorityDocument(terminal, file).catch((error: unknown) => {
    throw error instanceof CliError ? error : inputError(`${file} holds no trust anchor document.`);
  });
  const keys = authorityKeysOf(document);
  if (keys === null)
    throw inputError(`${file} publishes no keys: it is the trust anchor of a node in development mode.`);
  return keys;
}

async function one(parts: LedgerParts, ledgerId: string, keyspace: string): Promise<ClusterScrub> {
  const scrub = await scrubLedger({ ...parts, expectations: null }, ledgerId);
  if (scrub.events === 0 && scrub.findings.length === 0)
    throw inputError(`There is no ledger ${ledgerId} in keyspace ${keyspace}: check the id and CASSANDRA_KEYSPACE.`);
  return { ...scrub, ledgers: 1, trees: null };
}

/** Where the bar stands when the ledgers, the projections and the trees were read: the shares of their times. */
const ends = { ledgers: 0.65, projections: 0.7, trees: 1 };

async function all(terminal: Terminal, parts: LedgerParts, treeParts: TreeParts): Promise<ClusterScrub> {
  using bar = await progressBar(terminal, '{bar} {percentage} %', barSteps);
  let reached = 0;
  const reach = (from: number, to: number, share: number) => {
    // Ledgers and values end in any order, and progress never goes back.
    reached = Math.max(reached, Math.round(barSteps * (from + share * (to - from))));
    bar.set(reached);
  };
  const scrub = await scrubStore(parts, ({ what, share }) =>
    what === 'ledgers' ? reach(0, ends.ledgers, share) : reach(ends.ledgers, ends.projections, share),
  );
  const findings: Finding[] = [];
  let findingCount = 0;
  const trees = await scrubTrees({
    ...treeParts,
    found: (finding) => {
      findingCount += 1;
      if (findings.length < treeFindingsMax) findings.push(finding);
    },
    progress: (share) => reach(ends.projections, ends.trees, share),
  });
  bar.set(barSteps);
  return {
    ...scrub,
    findings: [...scrub.findings, ...findings],
    findingCount: scrub.findingCount + findingCount,
    trees,
  };
}
