import { randomBytes } from 'node:crypto';
import { progressBar } from '../../src/cli/terminal/progress-bar.ts';
import { CliError, inputError, type Terminal, usageError } from '../../src/cli/terminal/terminal.ts';
import { readAuthorityDocument } from '../../src/cli/verify/verify-input.ts';
import { type AuthorityKeys, authorityKeysOf } from '../../src/client/verify/key-source.ts';
import type { Finding } from '../../src/maintenance/scrub/finding.ts';
import { type ScrubParts, scrubLedger } from '../../src/maintenance/scrub/scrub-ledger.ts';
import { type StoreScrub, scrubStore } from '../../src/maintenance/scrub/scrub-store.ts';
import { storedAuthority, storedKeys } from '../../src/maintenance/scrub/stored-keys.ts';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import { StartError } from '../../src/runtime/start-error.ts';
import { CassandraInspection } from '../../src/store/cassandra/inspection.ts';
import { projectionWriter } from '../../src/store/cassandra/log/projection-writer.ts';
import { openCassandra } from '../../src/store/cassandra/open.ts';
import { type CassandraSettings, cassandraSettings } from '../../src/store/cassandra/session/settings.ts';

/** The command line options of `cluster verify`. */
export interface VerifyOptions {
  readonly all?: boolean;
  readonly authority?: string;
  readonly json?: boolean;
  readonly finish?: boolean;
}

const barSteps = 1_000;

type LedgerParts = Omit<ScrubParts, 'expectations'>;

/**
 * Scrubs ledgers of the keyspace that the CASSANDRA_ variables name: one ledger, or all of them if `ledgerId` is null.
 * Throws CliError or StartError, each with one sentence for the operator.
 */
export async function verifyLedgers(
  terminal: Terminal,
  ledgerId: string | null,
  options: VerifyOptions,
): Promise<StoreScrub> {
  const named = options.authority === undefined ? null : await authorityIn(terminal, options.authority);
  const settings = settingsIn(terminal);
  const now = () => systemClock.now();
  await using stores = await openCassandra({ settings, now, random: (bytes) => randomBytes(bytes) });
  const { session, bucketEvents } = stores;
  const stored = await storedAuthority(stores.records);
  const damaged: Finding[] = [...stored.findings];
  const parts: LedgerParts = {
    ledgers: stores.ledgers,
    inspection: new CassandraInspection({ session, bucketEvents, now }),
    keys: storedKeys(stores.records, (finding) => void damaged.push(finding)),
    authorityKeys: named ?? stored.keys,
    now,
    finish: options.finish === true ? projectionWriter({ session, bucketEvents, now }) : null,
  };
  const scrub = ledgerId === null ? await all(terminal, parts) : await one(parts, ledgerId, settings.keyspace);
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
    throw error instanceof StartError ? usageError(error.message) : error;
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

async function one(parts: LedgerParts, ledgerId: string, keyspace: string): Promise<StoreScrub> {
  const scrub = await scrubLedger({ ...parts, expectations: null }, ledgerId);
  if (scrub.events === 0 && scrub.findings.length === 0)
    throw inputError(`There is no ledger ${ledgerId} in keyspace ${keyspace}: check the id and CASSANDRA_KEYSPACE.`);
  return { ...scrub, ledgers: 1 };
}

async function all(terminal: Terminal, parts: LedgerParts): Promise<StoreScrub> {
  using bar = await progressBar(terminal, '{bar} {percentage} %', barSteps);
  let reached = 0;
  const scrub = await scrubStore(parts, ({ what, share }) => {
    // Ledgers take nearly all of the time. They end in any order, and progress never goes back.
    const step = Math.round(barSteps * (what === 'ledgers' ? share * 0.95 : 0.95 + share * 0.05));
    reached = Math.max(reached, step);
    bar.set(reached);
  });
  bar.set(barSteps);
  return scrub;
}
