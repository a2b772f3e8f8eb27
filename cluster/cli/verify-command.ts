import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { progressBar } from '../../src/cli/progress-bar.ts';
import { CliError, type Terminal } from '../../src/cli/terminal.ts';
import { readAuthorityDocument } from '../../src/cli/verify-input.ts';
import { authorityKeysOf } from '../../src/client/key-source.ts';
import { LedgerError } from '../../src/domain/errors.ts';
import { isUuid } from '../../src/domain/uuid.ts';
import type { ScrubParts } from '../../src/scrub/scrub-ledger.ts';
import { scrubLedger } from '../../src/scrub/scrub-ledger.ts';
import { type StoreScrub, scrubStore } from '../../src/scrub/scrub-store.ts';
import { storedAuthority, storedKeys } from '../../src/scrub/stored-keys.ts';
import { CassandraInspection } from '../../src/store/cassandra/inspection.ts';
import { openCassandra } from '../../src/store/cassandra/open.ts';
import type { CqlSession } from '../../src/store/cassandra/session.ts';
import { cassandraSettings } from '../../src/store/cassandra/settings.ts';
import { systemClock } from '../../src/system.ts';
import { exitCodeOf, scrubJson, scrubText, UNCHECKED } from './scrub-report.ts';

interface VerifyOptions {
  readonly all?: boolean;
  readonly authority?: string;
  readonly json?: boolean;
  readonly finish?: boolean;
}

const barSteps = 1_000;

/**
 * `cluster verify LEDGER | --all`: ledgers against the rules, read from the store and not through a node. Exit code 0: all is as it
 * should be; 1: something is not; 2: nothing wrong was found, and not everything could be checked.
 */
export function addClusterVerify(cluster: Command, terminal: Terminal): void {
  cluster
    .command('verify')
    .description(
      'Check every hash, link, signature and projection of a ledger, or of all, as they stand in Cassandra. Exit code: 0 good, 1 damaged, 2 not everything checked.',
    )
    .argument('[ledger]', 'ledger id')
    .option('--all', 'all ledgers, and what stands beside them and belongs to none')
    .option('--authority <file>', 'trust anchor document to check seals with; else the keys in the store')
    .option(
      '--finish',
      'have projections written that nodes left unwritten when they died; owners then claim their ledgers again',
    )
    .option('--json', 'show the result as JSON')
    .action(async (ledgerId: string | undefined, options: VerifyOptions) => {
      if ((ledgerId === undefined) === (options.all !== true)) throw new CliError('Give either a ledger id or --all.');
      if (ledgerId !== undefined && !isUuid(ledgerId)) throw new CliError('A ledger id is a UUID in lower case.');
      try {
        const scrub = await verify(terminal, ledgerId ?? null, options);
        await terminal.print(options.json === true ? scrubJson(scrub) : scrubText(scrub));
        terminal.exitWith(exitCodeOf(scrub));
      } catch (error) {
        terminal.tell(`ledger-trust: ${sentenceOf(error)}\n`);
        terminal.exitWith(UNCHECKED);
      }
    });
}

async function verify(terminal: Terminal, ledgerId: string | null, options: VerifyOptions): Promise<StoreScrub> {
  const settings = cassandraSettings(terminal.env);
  const now = () => systemClock.now();
  let session: CqlSession | null = null;
  await using stores = await openCassandra({
    settings,
    now,
    random: (bytes) => randomBytes(bytes),
    around: (opened) => {
      session = opened;
      return opened;
    },
  });
  if (session === null) throw new TypeError('Cassandra was opened without a session');
  const bucketEvents = Number(await stores.facts.get('bucket-events'));
  const stored = await storedAuthority(stores.records);
  const named =
    options.authority === undefined ? null : authorityKeysOf(await readAuthorityDocument(terminal, options.authority));
  const parts: Omit<ScrubParts, 'expectations'> = {
    ledgers: stores.ledgers,
    inspection: new CassandraInspection({ session, bucketEvents, now }),
    keys: storedKeys(stores.records),
    authorityKeys: named ?? stored.keys,
    now,
    finish: options.finish === true,
  };
  const scrub = ledgerId === null ? await all(terminal, parts) : await one(parts, ledgerId, settings.keyspace);
  return { ...scrub, findings: [...stored.findings, ...scrub.findings] };
}

async function one(parts: Omit<ScrubParts, 'expectations'>, ledgerId: string, keyspace: string): Promise<StoreScrub> {
  const scrub = await scrubLedger({ ...parts, expectations: null }, ledgerId);
  if (scrub.events === 0 && scrub.findings.length === 0)
    throw new CliError(`There is no ledger ${ledgerId} in keyspace ${keyspace}: check the id and CASSANDRA_KEYSPACE.`);
  return { ...scrub, ledgers: 1 };
}

async function all(terminal: Terminal, parts: Omit<ScrubParts, 'expectations'>): Promise<StoreScrub> {
  const bar = await progressBar(terminal, '{bar} {percentage} %', barSteps);
  try {
    // Ledgers take nearly all of the time; of what stands beside them there is little.
    return await scrubStore(parts, ({ what, share }) =>
      bar.set(Math.round(barSteps * (what === 'ledgers' ? share * 0.95 : 0.95 + share * 0.05))),
    );
  } finally {
    bar.stop();
  }
}

function sentenceOf(error: unknown): string {
  if (error instanceof LedgerError)
    return 'Cassandra does not answer: not everything was checked; try again when it does.';
  return error instanceof Error ? error.message : String(error);
}
