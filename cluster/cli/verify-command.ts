import type { Command } from 'commander';
import { exitCodes } from '../../src/cli/terminal/exit-codes.ts';
import { shownText } from '../../src/cli/terminal/shown-text.ts';
import { CliError, type Terminal, usageError } from '../../src/cli/terminal/terminal.ts';
import { LedgerError } from '../../src/domain/errors.ts';
import { isUuid } from '../../src/domain/values/uuid-form.ts';
import type { VerifyOptions } from './verify-ledgers.ts';
import { exitCodeOf, scrubJson, scrubText } from './verify-report.ts';

/**
 * `cluster verify LEDGER | --all`: checks ledgers against the rules. It reads the store directly, not through a node.
 */
export function addClusterVerify(cluster: Command, terminal: Terminal): void {
  cluster
    .command('verify')
    .description(
      'Check every hash, link, signature and projection of a ledger, or of all, as they stand in Cassandra, and with --all every hash of trees and signed head; the exit code is the result.',
    )
    .argument('[ledger]', 'ledger id')
    .option('--all', 'all ledgers, and what stands beside them and belongs to none')
    .option('--authority <file>', 'trust anchor document to check seals with; else the keys in the store')
    .option('--finish', 'write projections that are missing, of ledgers whose events are all as they were written')
    .option('--repair', 'remove wrong hashes of trees, with --all: nodes make them anew from the events')
    .option('--json', 'show the result as JSON')
    .addHelpText(
      'after',
      `
Exit code:
  0   good
  ${exitCodes.failed}   damaged
  ${exitCodes.incomplete}   nothing wrong found, but not everything could be checked
  ${exitCodes.usage}  no result: the command line or a CASSANDRA_ variable is wrong
  ${exitCodes.input}  no result: there is no such ledger, or a file is not there or does not hold what it should
  ${exitCodes.unavailable}  no result: it broke off, as where Cassandra does not answer, or the keyspace is not as this version needs it`,
    )
    .action(async (ledgerId: string | undefined, options: VerifyOptions) => {
      // Loaded here, so that the other commands start faster.
      const { verifyLedgers } = await import('./verify-ledgers.ts');
      try {
        if ((ledgerId === undefined) === (options.all !== true)) throw usageError('Give either a ledger id or --all.');
        if (ledgerId !== undefined && !isUuid(ledgerId)) throw usageError('A ledger id is a UUID in lower case.');
        if (options.repair === true && ledgerId !== undefined) throw usageError('Give --repair with --all.');
        const scrub = await verifyLedgers(terminal, ledgerId ?? null, options);
        await terminal.print(options.json === true ? scrubJson(scrub) : scrubText(scrub));
        terminal.exitWith(exitCodeOf(scrub));
      } catch (error) {
        terminal.tell(`ledger-trust: ${shownText(sentenceOf(error))}\n`);
        terminal.exitWith(error instanceof CliError ? error.exitCode : exitCodes.unavailable);
      }
    });
}

function sentenceOf(error: unknown): string {
  if (error instanceof LedgerError && (error.code === 'unavailable' || error.code === 'overloaded'))
    return 'Cassandra does not answer: there is no result; try again when it does.';
  return error instanceof Error ? error.message : String(error);
}
