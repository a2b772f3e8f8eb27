import { randomBytes } from 'node:crypto';
import { LedgerError } from '../../domain/errors.ts';
import { CopyRefused } from '../../maintenance/copy/copy-ledger.ts';
import { copyStore, type StoreCopy } from '../../maintenance/copy/copy-store.ts';
import { readConfig } from '../../node/config.ts';
import { systemClock } from '../../runtime/clock/system-clock.ts';
import { openCassandra } from '../../store/cassandra/open.ts';
import { cassandraSettings } from '../../store/cassandra/session/settings.ts';
import { Fenced, OutcomeUnknown } from '../../store/ledger-store.ts';
import { openWholeLmdb } from '../../store/lmdb/open-whole.ts';
import { UnreadableRecord } from '../../store/unreadable-record.ts';
import { counted } from '../terminal/counted.ts';
import { progressBar } from '../terminal/progress-bar.ts';
import { CliError, type Terminal } from '../terminal/terminal.ts';

/**
 * `ledger-trust copy --from lmdb --to cassandra`: copies the data of DATA_DIR, which no node may serve meanwhile, into
 * the keyspace that the CASSANDRA_ variables name. Run again after an interruption, it resumes. Returns the exit code:
 * 1 if something was not copied. Throws CliError, ConfigError or StartError with one sentence if the copy cannot be
 * completed.
 */
export async function copy(terminal: Terminal, { from, to }: { from: string; to: string }): Promise<number> {
  if (from !== 'lmdb' || to !== 'cassandra')
    throw new CliError('Data can be copied `--from lmdb --to cassandra`, and no other way.');
  const settings = cassandraSettings(terminal.env);
  const { dataDir, logOrigin } = readConfig({ ...terminal.env, SVC_MODE: 'development' });
  const now = () => systemClock.now();
  await using source = await openWholeLmdb(dataDir, now);
  await using target = await openCassandra({ settings, now, random: (bytes) => randomBytes(bytes) });
  const size = source.whole.size();
  const total = size.events + size.records;
  let copied: StoreCopy;
  {
    using bar = await progressBar(terminal, '{bar} {value} of {total} events and records', total);
    copied = await copyStore({ source, target, logOrigin, now, progress: (count) => bar.add(count) }).catch(
      (error: unknown) => {
        throw brokenOff(error);
      },
    );
    // Expired records and refused things were not counted.
    bar.set(total);
  }
  const { ledgers, events, records, histories, signedHeads, refusals, refusalCount } = copied;
  for (const sentence of refusals) terminal.tell(`${sentence}\n`);
  const heads = signedHeads === null ? '' : `, ${counted(signedHeads, 'signed head')}`;
  const what = `${counted(events, 'event')} in ${counted(ledgers, 'ledger')}, ${counted(records, 'record')} and the access histories of ${counted(histories, 'actor')}${heads}`;
  const next =
    refusalCount > 0
      ? `; ${refusalCount} things were not copied`
      : `. Give its nodes the keys of ${dataDir} (AUTHORITY_KEY_FILE, SECRETS_KEY_FILE, LOG_KEY_FILE), and check by \`ledger-trust cluster verify --all\`${signedHeads === null ? '' : `; never start a node on ${dataDir} again: the cluster signs for its logs now`}`;
  await terminal.print(`Copied ${what} from ${dataDir} to keyspace ${settings.keyspace}${next}.\n`);
  return refusalCount > 0 ? 1 : 0;
}

/**
 * The error of a copy that broke off, as a CliError with one sentence for the operator. Returns any other error as it
 * is.
 */
export function brokenOff(error: unknown): unknown {
  if (error instanceof CopyRefused) return new CliError(error.message);
  if (error instanceof UnreadableRecord)
    return new CliError(
      'A record of DATA_DIR is damaged: `ledger-trust scrub` names it; restore a backup, and copy that.',
    );
  if (error instanceof Fenced)
    return new CliError(
      'Another process writes to the ledgers of the keyspace: stop its nodes and other copies; what was copied is kept; then run the same again.',
    );
  if (!(error instanceof LedgerError || error instanceof OutcomeUnknown)) return error;
  return new CliError('Cassandra does not answer: what was copied is kept; run the same again when it does.');
}
